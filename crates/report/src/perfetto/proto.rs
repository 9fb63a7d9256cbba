//! The few messages of Perfetto's trace format that a schedule needs.
//!
//! Field numbers from Perfetto's `protos/perfetto/trace/{trace,trace_packet}.proto` and
//! `trace/track_event/{track_descriptor,track_event,debug_annotation}.proto`. A trace is a sequence of
//! packets; a packet describes a track or is an event on one. Times are nanoseconds.

use prost::{Enumeration, Message, Oneof};

/// A trace file: a sequence of packets, so that files may be written packet by packet.
#[derive(Clone, PartialEq, Message)]
pub struct Trace {
    /// In order of time.
    #[prost(message, repeated, tag = "1")]
    pub packet: Vec<TracePacket>,
}

/// One entry of a trace.
#[derive(Clone, PartialEq, Message)]
pub struct TracePacket {
    /// Nanoseconds.
    #[prost(uint64, optional, tag = "8")]
    pub timestamp: Option<u64>,
    /// The writer of the packet; required of every packet with an event.
    #[prost(uint32, optional, tag = "10")]
    pub trusted_packet_sequence_id: Option<u32>,
    /// [`SEQ_INCREMENTAL_STATE_CLEARED`] on the first packet of a writer.
    #[prost(uint32, optional, tag = "13")]
    pub sequence_flags: Option<u32>,
    /// The content of the packet.
    #[prost(oneof = "Data", tags = "11, 60")]
    pub data: Option<Data>,
}

/// This writer starts afresh: nothing before it is needed to read what follows.
pub const SEQ_INCREMENTAL_STATE_CLEARED: u32 = 1;

/// The content of a packet.
#[derive(Clone, PartialEq, Oneof)]
pub enum Data {
    /// An event on a track.
    #[prost(message, tag = "11")]
    Event(TrackEvent),
    /// A track.
    #[prost(message, tag = "60")]
    Track(TrackDescriptor),
}

/// A line of the time chart.
#[derive(Clone, PartialEq, Message)]
pub struct TrackDescriptor {
    /// Unique in the trace, not 0.
    #[prost(uint64, optional, tag = "1")]
    pub uuid: Option<u64>,
    /// As shown.
    #[prost(string, optional, tag = "2")]
    pub name: Option<String>,
    /// The track it lies under.
    #[prost(uint64, optional, tag = "5")]
    pub parent_uuid: Option<u64>,
    /// How the tracks under it are ordered.
    #[prost(enumeration = "ChildOrdering", optional, tag = "11")]
    pub child_ordering: Option<i32>,
    /// Its place among its siblings where the parent's order is explicit.
    #[prost(int32, optional, tag = "12")]
    pub sibling_order_rank: Option<i32>,
}

/// How the tracks under a track are ordered.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Enumeration)]
#[repr(i32)]
pub enum ChildOrdering {
    /// As the viewer likes.
    Unknown = 0,
    /// By `sibling_order_rank`.
    Explicit = 3,
}

/// Something on a track: the begin or the end of a slice, or an instant.
#[derive(Clone, PartialEq, Message)]
pub struct TrackEvent {
    /// Details shown when the event is selected.
    #[prost(message, repeated, tag = "4")]
    pub debug_annotations: Vec<DebugAnnotation>,
    /// The type of the event.
    #[prost(enumeration = "EventType", optional, tag = "9")]
    pub r#type: Option<i32>,
    /// Where it is.
    #[prost(uint64, optional, tag = "11")]
    pub track_uuid: Option<u64>,
    /// As shown; the end of a slice needs none.
    #[prost(string, optional, tag = "23")]
    pub name: Option<String>,
}

/// The kinds of events that Lockwright writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Enumeration)]
#[repr(i32)]
pub enum EventType {
    /// Not given.
    Unspecified = 0,
    /// A slice begins.
    SliceBegin = 1,
    /// The innermost open slice of the track ends.
    SliceEnd = 2,
    /// No duration.
    Instant = 3,
}

/// One detail of an event.
#[derive(Clone, PartialEq, Message)]
pub struct DebugAnnotation {
    /// Of what.
    #[prost(string, optional, tag = "10")]
    pub name: Option<String>,
    /// How much.
    #[prost(uint64, optional, tag = "3")]
    pub uint_value: Option<u64>,
}
