//! The judgement, against its model.
