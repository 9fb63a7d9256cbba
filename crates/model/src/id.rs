//! Names of things: dense indices, so that tables are arrays.

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub struct $name(pub u16);

        impl $name {
            /// The index into a table that has one row for each of these.
            #[inline]
            #[must_use]
            pub const fn index(self) -> usize {
                self.0 as usize
            }

            /// The id of row `index`.
            ///
            /// # Panics
            /// When `index` does not fit the 16 bits of an id; the limits of a system are far below.
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
    /// A task of a [`System`](crate::System): its place in [`System::tasks`](crate::System::tasks).
    TaskId
}
id! {
    /// A shared resource: its place in [`System::resources`](crate::System::resources).
    ResourceId
}
id! {
    /// A processor of the platform, from 0.
    CpuId
}
