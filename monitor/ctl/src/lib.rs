//! caissonctl: the command of the admin.
