//! caisson-authd: alone with passwords and keys
