//! Fields that are text in JSON, in the form that operators write.

use std::fmt::{self, Display};
use std::str::FromStr;

use serde::de::{self, Error as _, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serializer};

pub(crate) fn serialize<T: Display, S: Serializer>(value: &T, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(value)
}

pub(crate) fn deserialize<'de, T, D>(from: D) -> Result<T, D::Error>
where
    T: FromStr<Err: Display>,
    D: Deserializer<'de>,
{
    String::deserialize(from)?.parse().map_err(D::Error::custom)
}

/// Reads a port, which may be given as a number, or none.
pub(crate) fn port_or_number<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<String>, D::Error> {
    from.deserialize_any(PortText)
}

struct PortText;

impl<'de> Visitor<'de> for PortText {
    type Value = Option<String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the number of a port, or its name, such as LOCAL")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Some(text.to_owned()))
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Self::Value, E> {
        Ok(Some(number.to_string()))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Self::Value, E> {
        match u64::try_from(number) {
            Ok(number) => self.visit_u64(number),
            Err(_) => Err(E::invalid_value(Unexpected::Signed(number), &self)),
        }
    }

    fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_none<E: de::Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }
}

/// Optional values of this kind.
pub(crate) mod option {
    use super::{Deserialize, Deserializer, Display, FromStr, Serializer};
    use serde::de::Error as _;

    pub(crate) fn serialize<T: Display, S: Serializer>(
        value: &Option<T>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        match value {
            Some(value) => to.collect_str(value),
            None => to.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, T, D>(from: D) -> Result<Option<T>, D::Error>
    where
        T: FromStr<Err: Display>,
        D: Deserializer<'de>,
    {
        let text = Option::<String>::deserialize(from)?;
        text.map(|text| text.parse().map_err(D::Error::custom)).transpose()
    }
}

/// Lists of such values.
pub(crate) mod list {
    use super::{Deserialize, Deserializer, Display, FromStr, Serializer};
    use serde::de::Error as _;

    pub(crate) fn serialize<T: Display, S: Serializer>(
        values: &[T],
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.collect_seq(values.iter().map(ToString::to_string))
    }

    pub(crate) fn deserialize<'de, T, D>(from: D) -> Result<Vec<T>, D::Error>
    where
        T: FromStr<Err: Display>,
        D: Deserializer<'de>,
    {
        let texts = Vec::<String>::deserialize(from)?;
        texts.iter().map(|text| text.parse().map_err(D::Error::custom)).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::{ByName, StaticBucket};

    #[test]
    fn a_port_is_a_name_or_a_number() {
        for (port, read) in
            [(json!(2), Some("2")), (json!("LOCAL"), Some("LOCAL")), (json!(null), None)]
        {
            let bucket = json!({"watch_port": port, "actions": "output:2"});
            let ByName(bucket): ByName<StaticBucket> = serde_json::from_value(bucket).unwrap();
            assert_eq!(bucket.watch_port.as_deref(), read);
        }
        for wrong in [json!([]), json!(-1), json!(1.5), json!(true)] {
            let bucket = json!({"watch_port": wrong, "actions": "output:2"});
            let error = serde_json::from_value::<ByName<StaticBucket>>(bucket).unwrap_err();
            assert!(error.to_string().contains("expected the number of a port, or its name"));
        }
    }
}
