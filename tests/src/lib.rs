//! End-to-end scenarios: the real daemon, real clients, real uids
