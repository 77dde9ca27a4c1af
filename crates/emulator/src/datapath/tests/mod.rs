//! What the specification says, sentence by sentence.
