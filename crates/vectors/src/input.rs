//! Reading examples.

use serde::Deserialize;
use serde_json::{Map, Value};

/// The format's name.
const SCHEMA: &str = "rt-analysis-vectors/1";

/// Why an example cannot be read, or is not one for its analysis.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Malformed(pub String);

/// One example.
#[derive(Clone, Debug, Deserialize)]
pub struct Vector {
    /// Names it, among all.
    pub id: String,
    /// Which analysis.
    pub analysis: String,
    /// What goes in.
    pub input: Input,
    /// What comes out.
    pub expected: Value,
}

/// What goes into an analysis: a file's fields, most of which one analysis or another leaves out.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Input {
    /// In order, where the analysis knows an order; most urgent first where tasks have no priority of their own.
    #[serde(default)]
    pub tasks: Vec<InputTask>,
    /// Numbers of the whole system.
    #[serde(default)]
    pub params: Map<String, Value>,
    /// All else: jobs, resources, points.
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

/// What one job of a task asks of one resource.
#[derive(Clone, Debug, Deserialize)]
pub struct InputRequest {
    pub resource: u16,
    pub count: u32,
    pub length: Option<u64>,
    #[serde(rename = "type")]
    pub kind: Option<String>,
}

impl Input {
    /// A parameter that is a number.
    ///
    /// # Errors
    /// Where there is none.
    pub fn number(&self, name: &str) -> Result<u64, Malformed> {
        self.params
            .get(name)
            .and_then(Value::as_u64)
            .ok_or_else(|| Malformed(format!("it needs params.{name}, a number")))
    }

    /// A parameter that says yes or no; no where there is none.
    #[must_use]
    pub fn is(&self, name: &str) -> bool {
        self.params.get(name).and_then(Value::as_bool).unwrap_or(false)
    }
}

/// Reads the examples of one file.
///
/// # Errors
/// Where the text is not of the format.
pub fn read(text: &str) -> Result<Vec<Vector>, Malformed> {
    #[derive(Deserialize)]
    struct File {
        schema: String,
        vectors: Vec<Vector>,
    }
    let file: File = serde_json::from_str(text).map_err(|why| Malformed(why.to_string()))?;
    if file.schema != SCHEMA {
        return Err(Malformed(format!("its schema is `{}`, not `{SCHEMA}`", file.schema)));
    }
    Ok(file.vectors)
}
