//! Reads what the host passes in (options, requests, replies, recall calls, checkpoints) from
//! JSON, with errors that name the member.

use std::borrow::Cow;

use crate::error::{Error, ErrorCode};
use crate::json::{Json, Kind, Value};

/// Parses a text that must be JSON; `place` names it in errors.
pub(crate) fn parse<'a>(text: &'a str, place: &str, code: ErrorCode) -> Result<Json<'a>, Error> {
    Json::parse(text).map_err(|fault| {
        let what = format!("not JSON: {} at byte {}", fault.what, fault.at);
        Error::new(code, place.to_owned().into(), what.into())
    })
}

/// An object of named arguments.
pub(crate) struct Arguments<'j> {
    value: Value<'j>,
    place: String,
    code: ErrorCode,
}

impl<'j> Arguments<'j> {
    /// Takes an object whose members all have one of the `known` names.
    pub(crate) fn new(
        value: Value<'j>,
        place: impl Into<String>,
        code: ErrorCode,
        known: &[&str],
    ) -> Result<Arguments<'j>, Error> {
        let arguments = Arguments::open(value, place, code)?;
        for (name, _) in value.members() {
            if !known.contains(&&*name) {
                let what = ["unknown; known are ", &known.join(", ")].concat();
                return Err(Error::new(code, arguments.at(&name).into(), what.into()));
            }
        }
        Ok(arguments)
    }

    /// Takes an object that may have further members.
    pub(crate) fn open(
        value: Value<'j>,
        place: impl Into<String>,
        code: ErrorCode,
    ) -> Result<Arguments<'j>, Error> {
        let arguments = Arguments { value, place: place.into(), code };
        match value.kind() {
            Kind::Object => Ok(arguments),
            _ => Err(Error::expected(code, &arguments.place, "an object")),
        }
    }

    /// The place of a member, for errors.
    pub(crate) fn at(&self, name: &str) -> String {
        [&self.place, ".", name].concat()
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn wrong(&self, name: &str, expected: &str) -> Error {
        Error::expected(self.code, &self.at(name), expected)
    }

    pub(crate) fn get(&self, name: &str) -> Option<Value<'j>> {
        self.value.get(name)
    }

    fn optional<T>(
        &self,
        name: &str,
        expected: &str,
        read: impl Fn(Value<'j>) -> Option<T>,
    ) -> Result<Option<T>, Error> {
        match self.get(name) {
            None => Ok(None),
            Some(value) => read(value).map(Some).ok_or_else(|| self.wrong(name, expected)),
        }
    }

    pub(crate) fn number(&self, name: &str) -> Result<Option<f64>, Error> {
        self.optional(name, "a number", |value| value.number())
    }

    pub(crate) fn text(&self, name: &str) -> Result<Option<Cow<'j, str>>, Error> {
        self.optional(name, "a string", |value| value.string())
    }

    pub(crate) fn owned(&self, name: &str) -> Result<Option<String>, Error> {
        Ok(self.text(name)?.map(Cow::into_owned))
    }

    pub(crate) fn flag(&self, name: &str) -> Result<Option<bool>, Error> {
        self.optional(name, "true or false", |value| value.boolean())
    }

    pub(crate) fn list(&self, name: &str) -> Result<Option<Vec<Value<'j>>>, Error> {
        self.optional(name, "an array", |value| {
            (value.kind() == Kind::Array).then(|| value.items().collect())
        })
    }

    /// A whole number of 32 bits.
    pub(crate) fn count(&self, name: &str) -> Result<Option<u32>, Error> {
        self.optional(name, "a whole number", |value| value.count())
    }

    /// A member that must be there.
    pub(crate) fn required<T>(&self, name: &str, value: Option<T>) -> Result<T, Error> {
        value.ok_or_else(|| Error::new(self.code, self.at(name).into(), "missing".into()))
    }
}
