//! Gemini: `contents`.

use super::draft::{Draft, text};
use super::{Fault, Format};
use crate::json::{Value, write_string};
use crate::transcript::{Pairing, Part, Role, Step};

pub(super) struct Gemini;

impl Format for Gemini {
    fn pairing(&self) -> Pairing {
        Pairing::Turn
    }

    fn read<'j>(&self, value: Value<'j>, draft: &mut Draft<'j>) -> Result<Role, Fault> {
        draft.role_name = text(value.get("role")).map_err(|fault| fault.within("role"))?;
        draft.opaque(&[], value);
        Ok(Role::Other)
    }

    fn user_first(&self) -> bool {
        true
    }

    fn id_path(&self, _part: &Part) -> Option<Vec<Step>> {
        None
    }

    fn user_message(&self, text: &str) -> String {
        let mut out = String::from("{\"role\":\"user\",\"content\":");
        write_string(&mut out, text);
        out.push('}');
        out
    }

    fn result_message(&self, _id: &str, _name: &str, text: &str) -> String {
        self.user_message(text)
    }

    fn tool(&self, _name: &str, _description: &str, parameters: &str) -> String {
        parameters.to_owned()
    }
}
