//! Identifiers of tasks, resources and processors. They are dense indices, so that tables are arrays.

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        ///
        /// This is a plain value: users write it as a literal, and it gets no further fields.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub struct $name(pub u16);

        impl $name {
            /// Returns the id as an index into a table with one row per id.
            #[inline]
            #[must_use]
            pub const fn index(self) -> usize {
                self.0 as usize
            }

            /// Returns the id of row `index`.
            ///
            /// # Panics
            /// Panics if `index` does not fit into the 16 bits of an id. The limits of a system are far lower.
            #[inline]
            #[must_use]
            pub const fn new(index: usize) -> Self {
                assert!(index <= u16::MAX as usize, "an id has 16 bits");
                Self(index as u16)
            }
        }
    };
}

id! {
    /// The id of a task: its index in [`System::tasks`](crate::System::tasks).
    TaskId
}
id! {
    /// The id of a shared resource: its index in [`System::resources`](crate::System::resources).
    ResourceId
}
id! {
    /// The number of a processor of the platform, from 0.
    CpuId
}
