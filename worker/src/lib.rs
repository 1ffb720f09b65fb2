//! caisson-worker: the event loop that talks to the network, without privilege
