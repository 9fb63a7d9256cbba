//! Tidy tables of results: a row for each cell and method, as CSV and as Parquet.

use std::error::Error;

/// The type of a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Text.
    Text,
    /// A whole number.
    Whole,
    /// A number, with this number of decimals.
    Number(usize),
}

/// A value of a column of its type.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    /// Text.
    Text(String),
    /// A whole number.
    Whole(u64),
    /// A number, or none.
    Number(Option<f64>),
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

/// A table.
pub struct Table {
    columns: Vec<(String, Kind)>,
    /// The texts of the values, by row; empty for none.
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without rows.
    pub fn new(columns: Vec<(String, Kind)>) -> Self {
        Self { columns, rows: Vec::new() }
    }

    /// Adds a row, which has a value for each column.
    pub fn push(&mut self, row: Vec<Value>) {
        let text = |(value, (_, kind)): (Value, &(String, Kind))| match (value, kind) {
            (Value::Text(text), _) => text,
            (Value::Whole(whole), _) => whole.to_string(),
            (Value::Number(Some(number)), Kind::Number(decimals)) => format!("{number:.decimals$}"),
            (Value::Number(Some(number)), _) => number.to_string(),
            (Value::Number(None), _) => String::new(),
        };
        self.rows.push(row.into_iter().zip(&self.columns).map(text).collect());
    }

    /// The table as CSV.
    ///
    /// # Errors
    /// The writer fails.
    pub fn to_csv(&self) -> Result<Vec<u8>, Box<dyn Error>> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(self.columns.iter().map(|(name, _)| name))?;
        for row in &self.rows {
            writer.write_record(row)?;
        }
        Ok(writer.into_inner()?)
    }

    /// The same values as Parquet. The bytes depend on the table alone: there is no compression, and no name of a
    /// version in them.
    ///
    /// # Errors
    /// The writer fails.
    #[cfg(feature = "parquet")]
    pub fn to_parquet(&self) -> Result<Vec<u8>, Box<dyn Error>> {
        use parquet::basic::{LogicalType, Repetition, Type as Physical};
        use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
        use parquet::file::properties::WriterProperties;
        use parquet::file::writer::SerializedFileWriter;
        use parquet::schema::types::Type;
        use std::sync::Arc;

        let field = |(name, kind): &(String, Kind)| {
            let (physical, logical) = match kind {
                Kind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
                Kind::Whole => (Physical::INT64, None),
                Kind::Number(_) => (Physical::DOUBLE, None),
            };
            let field = Type::primitive_type_builder(name, physical).with_repetition(Repetition::OPTIONAL);
            field.with_logical_type(logical).build().map(Arc::new)
        };
        let fields = self.columns.iter().map(field).collect::<Result<Vec<_>, _>>()?;
        let schema = Type::group_type_builder("results").with_fields(fields).build()?;
        let properties = WriterProperties::builder().set_created_by("lockwright".into()).build();
        let mut writer = SerializedFileWriter::new(Vec::new(), Arc::new(schema), Arc::new(properties))?;
        let mut group = writer.next_row_group()?;
        for (index, (_, kind)) in self.columns.iter().enumerate() {
            let texts: Vec<&str> = self.rows.iter().map(|row| row[index].as_str()).collect();
            let is_there = |text: &&&str| !text.is_empty();
            let levels: Vec<i16> = texts.iter().map(|text| i16::from(!text.is_empty())).collect();
            let there = || texts.iter().filter(is_there);
            let mut column = group.next_column()?.ok_or("a column less than the schema has")?;
            match kind {
                Kind::Text => {
                    let values: Vec<ByteArray> = there().map(|text| ByteArray::from(*text)).collect();
                    column.typed::<ByteArrayType>().write_batch(&values, Some(&levels), None)?;
                }
                Kind::Whole => {
                    let values = there().map(|text| text.parse()).collect::<Result<Vec<i64>, _>>()?;
                    column.typed::<Int64Type>().write_batch(&values, Some(&levels), None)?;
                }
                Kind::Number(_) => {
                    let values = there().map(|text| text.parse()).collect::<Result<Vec<f64>, _>>()?;
                    column.typed::<DoubleType>().write_batch(&values, Some(&levels), None)?;
                }
            }
            column.close()?;
        }
        group.close()?;
        Ok(writer.into_inner()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let columns = [("name", Kind::Text), ("count", Kind::Whole), ("share", Kind::Number(2))];
        let mut table = Table::new(columns.map(|(name, kind)| (name.into(), kind)).into());
        table.push(vec!["a, b".into(), Value::Whole(3), Value::Number(Some(1.0 / 3.0))]);
        table.push(vec!["".into(), Value::Whole(0), Value::Number(None)]);
        table
    }

    #[test]
    fn csv_has_the_decimals_of_its_columns() {
        let csv = String::from_utf8(table().to_csv().expect("is written")).expect("is text");
        assert_eq!(csv, "name,count,share\n\"a, b\",3,0.33\n,0,\n");
    }

    #[cfg(feature = "parquet")]
    #[test]
    fn parquet_has_the_values_of_the_csv() {
        use parquet::file::reader::{FileReader, SerializedFileReader};

        let bytes = table().to_parquet().expect("is written");
        assert_eq!(bytes, table().to_parquet().expect("is written"));
        let reader = SerializedFileReader::new(file(&bytes)).expect("is Parquet");
        let rows = reader.get_row_iter(None).expect("has rows");
        let rows: Vec<String> = rows.map(|row| row.expect("is read").to_string()).collect();
        assert_eq!(rows, ["{name: \"a, b\", count: 3, share: 0.33}", "{name: null, count: 0, share: null}"]);
        // Negative control: a file that was cut short.
        assert!(SerializedFileReader::new(file(&bytes[..bytes.len() - 9])).is_err());
    }

    #[cfg(feature = "parquet")]
    fn file(bytes: &[u8]) -> std::fs::File {
        let mut file = tempfile::tempfile().expect("a file");
        std::io::Write::write_all(&mut file, bytes).expect("is written");
        file
    }
}
