//! Reading task-set files.
