//! What each app wants in the switches, and how they are brought to it.
