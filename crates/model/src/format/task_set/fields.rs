//! The keys of one table, and their values.

use super::{Diagnostic, Faults, shown};
use crate::format::diagnostic::nearest;
use core::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The known keys of one table.
#[derive(Debug)]
pub struct Fields<'a, 'i> {
    table: &'a DeTable<'i>,
    place: Range<usize>,
    /// The keys that some unknown key probably means. They are not reported as missing.
    misspelt: Vec<&'static str>,
}

/// A value and the place of its key.
#[derive(Clone, Debug)]
pub struct Found<'a, 'i> {
    pub(super) value: &'a Spanned<DeValue<'i>>,
    key: Range<usize>,
}

impl<'a, 'i> Fields<'a, 'i> {
    /// Reads a table, and reports every key that is not in `valid`. `owner`
    /// names the table in messages, and `place` is where it begins.
    pub(crate) fn of(
        table: &'a DeTable<'i>,
        owner: &str,
        place: Range<usize>,
        valid: &[&'static str],
        faults: &mut Faults,
    ) -> Self {
        let mut misspelt = Vec::new();
        for key in table.keys() {
            let name: &str = key.get_ref();
            if faults.is_full() {
                break;
            }
            if !valid.contains(&name) {
                let fault = Diagnostic::new(format!("unknown key {} in {owner}", shown(name))).at(key.span());
                let near = nearest(name, valid.iter().copied());
                misspelt.extend(near);
                faults.push(match near {
                    Some(near) => fault.help(format!("did you mean `{near}`?")),
                    None => fault.help(format!("the keys here are {}", valid.join(", "))),
                });
            }
        }
        Self { table, place, misspelt }
    }

    /// Returns the value of a key, if it is in the table.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<Found<'a, 'i>> {
        self.table.get_key_value(key).map(|(key, value)| Found { value, key: key.span() })
    }

    /// Returns whether the key is in the table, or an unknown key that is probably a misspelling of it.
    #[must_use]
    pub fn means(&self, key: &str) -> bool {
        self.table.contains_key(key) || self.misspelt.contains(&key)
    }

    /// Returns the value of a key like [`Self::get`], and reports a missing key.
    pub fn require(&self, key: &str, owner: &str, help: &str, faults: &mut Faults) -> Option<Found<'a, 'i>> {
        let found = self.get(key);
        if !self.means(key) {
            let place = self.get("name").map_or_else(|| self.place.clone(), |name| name.span());
            faults.push(Diagnostic::new(format!("{owner} has no {key}")).at(place).help(help));
        }
        found
    }

    /// Reads the name of a `kind`. The name is empty if it is missing or wrong.
    pub(super) fn name(&self, kind: &str, faults: &mut Faults) -> String {
        let help = format!("add name = \"...\" to the {kind}");
        let Some(found) = self.require("name", &format!("a {kind}"), &help, faults) else { return String::new() };
        let name = found.text(&format!("the name of a {kind}"), faults);
        if name.as_deref() == Some("") {
            faults.push(Diagnostic::new(format!("a {kind} without a name")).at(found.span()).help("give it a name"));
        }
        name.unwrap_or_default()
    }
}

impl<'a, 'i> Found<'a, 'i> {
    /// Returns the place of the value.
    #[must_use]
    pub fn span(&self) -> Range<usize> {
        self.value.span()
    }

    /// Returns the place of the key. For an element of a list it is the key of the list.
    #[must_use]
    pub fn key_span(&self) -> Range<usize> {
        self.key.clone()
    }

    /// Returns whether the value is a table.
    #[must_use]
    pub fn is_table(&self) -> bool {
        matches!(self.value.get_ref(), DeValue::Table(_))
    }

    /// Returns whether the value is a list.
    #[must_use]
    pub fn is_list(&self) -> bool {
        matches!(self.value.get_ref(), DeValue::Array(_))
    }

    pub(super) fn table(&self, what: &str, help: &str, faults: &mut Faults) -> Option<&'a DeTable<'i>> {
        match self.value.get_ref() {
            DeValue::Table(table) => Some(table),
            _ => {
                faults.push(self.mistyped(what, "a table").help(help));
                None
            }
        }
    }

    /// Reads a list. `what` names the value in messages.
    pub fn list(&self, what: &str, help: &str, faults: &mut Faults) -> Option<Vec<Self>> {
        match self.value.get_ref() {
            DeValue::Array(list) => Some(list.iter().map(|value| Found { value, key: self.key.clone() }).collect()),
            _ => {
                faults.push(self.mistyped(what, "a list").help(help));
                None
            }
        }
    }

    /// Reads a table with these keys. `owner` names the table in messages.
    pub fn fields(
        &self,
        owner: &str,
        keys: &[&'static str],
        help: &str,
        faults: &mut Faults,
    ) -> Option<Fields<'a, 'i>> {
        let table = self.table(owner, help, faults)?;
        Some(Fields::of(table, owner, self.span(), keys, faults))
    }

    /// Returns a diagnostic such as "`x` is a list, but should be a table".
    #[must_use]
    pub fn mistyped(&self, what: &str, wanted: &str) -> Diagnostic {
        let kind = match self.value.get_ref() {
            DeValue::String(_) => "a string",
            DeValue::Integer(_) => "a whole number",
            DeValue::Float(_) => "a number with decimals",
            DeValue::Boolean(_) => "true or false",
            DeValue::Datetime(_) => "a date",
            DeValue::Array(_) => "a list",
            DeValue::Table(_) => "a table",
        };
        Diagnostic::new(format!("{what} is {kind}, but should be {wanted}")).at(self.span())
    }
}
