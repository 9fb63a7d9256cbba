//! The input of examples.

use serde::Deserialize;
use serde_json::{Map, Value};

/// The name of the format.
const SCHEMA: &str = "rt-analysis-vectors/1";

/// The reason why an example cannot be read, or is not suitable for its analysis.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Malformed(pub String);

/// One example.
#[derive(Clone, Debug, Deserialize)]
pub struct Vector {
    /// The name of the example, unique among all.
    pub id: String,
    /// The name of the analysis.
    pub analysis: String,
    /// The input.
    pub input: Input,
    /// The expected result.
    pub expected: Value,
}

/// The input of an analysis. It has the fields of a file, most of which are optional for one analysis or another.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Input {
    /// The tasks, in order if the analysis has an order, and the
    /// most urgent first if tasks have no priority of their own.
    #[serde(default)]
    pub tasks: Vec<InputTask>,
    /// The parameters of the whole system.
    #[serde(default)]
    pub params: Map<String, Value>,
    /// All other fields, such as jobs, resources and points.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// A task of an example.
#[derive(Clone, Debug, Deserialize)]
pub struct InputTask {
    pub period: u64,
    pub deadline: u64,
    pub cost: Option<u64>,
    pub cost_excluding_critical_sections: Option<u64>,
    pub priority: Option<u64>,
    pub cluster: Option<u16>,
    pub partition: Option<u16>,
    pub response: Option<u64>,
    #[serde(default)]
    pub jitter: u64,
    #[serde(default)]
    pub blocked: u64,
    pub hp_direct_blocked: Option<u64>,
    #[serde(default)]
    pub suspended: u64,
    #[serde(default)]
    pub prio_inversion: u64,
    pub segment: Option<u64>,
    pub last_segment: Option<u64>,
    #[serde(default)]
    pub requests: Vec<InputRequest>,
}

/// The requests of one job of a task for one resource.
#[derive(Clone, Debug, Deserialize)]
pub struct InputRequest {
    pub resource: u16,
    pub count: u32,
    pub length: Option<u64>,
    #[serde(rename = "type")]
    pub kind: Option<String>,
}

impl Input {
    /// Returns a parameter that is a number.
    ///
    /// # Errors
    /// Returns an error if there is no such number.
    pub fn number(&self, name: &str) -> Result<u64, Malformed> {
        self.params
            .get(name)
            .and_then(Value::as_u64)
            .ok_or_else(|| Malformed(format!("params.{name} must be a number")))
    }

    /// Returns a parameter that is a truth value, or `false` if it is not given.
    #[must_use]
    pub fn is(&self, name: &str) -> bool {
        self.params.get(name).and_then(Value::as_bool).unwrap_or(false)
    }
}

/// Reads the examples of one file.
///
/// # Errors
/// Returns an error if the text is not in the format.
pub fn read(text: &str) -> Result<Vec<Vector>, Malformed> {
    #[derive(Deserialize)]
    struct File {
        schema: String,
        vectors: Vec<Vector>,
    }
    let file: File = serde_json::from_str(text).map_err(|why| Malformed(why.to_string()))?;
    if file.schema != SCHEMA {
        return Err(Malformed(format!("the schema is `{}`, not `{SCHEMA}`", file.schema)));
    }
    Ok(file.vectors)
}
