//! caisson-broker: the monitor's arm inside one account.
