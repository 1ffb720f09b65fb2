//! caissond: the root process; listeners, children, few answers
