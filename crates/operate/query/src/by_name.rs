//! Structures whose fields are given by name, and only so.
//!
//! Serde also takes a list for the fields of a structure, in their order. What an operator writes
//! must not depend on that order, so [`ByName`] refuses such a list, at any depth.

use std::fmt;

use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, EnumAccess, Error, MapAccess, SeqAccess,
    VariantAccess, Visitor,
};

/// A value of which every structure is read by the names of its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByName<T>(pub T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for ByName<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        T::deserialize(by_name(from)).map(ByName)
    }
}

/// A deserializer of which every structure is read by the names of its fields.
pub fn by_name<'de, D: Deserializer<'de>>(from: D) -> impl Deserializer<'de, Error = D::Error> {
    Named(from)
}

/// One side of serde, which passes this on to all that is inside.
struct Named<T>(T);

/// The visitor of a structure. It takes no list.
struct Fields<V>(V);

macro_rules! deserialize {
    ($($method:ident($($name:ident: $type:ty),*);)*) => {$(
        fn $method<V: Visitor<'de>>(self, $($name: $type,)* to: V) -> Result<V::Value, D::Error> {
            self.0.$method($($name,)* Named(to))
        }
    )*};
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Named<D> {
    type Error = D::Error;

    deserialize! {
        deserialize_any();
        deserialize_bool();
        deserialize_i8();
        deserialize_i16();
        deserialize_i32();
        deserialize_i64();
        deserialize_i128();
        deserialize_u8();
        deserialize_u16();
        deserialize_u32();
        deserialize_u64();
        deserialize_u128();
        deserialize_f32();
        deserialize_f64();
        deserialize_char();
        deserialize_str();
        deserialize_string();
        deserialize_bytes();
        deserialize_byte_buf();
        deserialize_option();
        deserialize_unit();
        deserialize_unit_struct(name: &'static str);
        deserialize_newtype_struct(name: &'static str);
        deserialize_seq();
        deserialize_tuple(len: usize);
        deserialize_tuple_struct(name: &'static str, len: usize);
        deserialize_map();
        deserialize_enum(name: &'static str, variants: &'static [&'static str]);
        deserialize_identifier();
        deserialize_ignored_any();
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        to: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_struct(name, fields, Fields(to))
    }

    fn is_human_readable(&self) -> bool {
        self.0.is_human_readable()
    }
}

macro_rules! visit {
    ($($method:ident($type:ty);)*) => {$(
        fn $method<E: Error>(self, value: $type) -> Result<V::Value, E> {
            self.0.$method(value)
        }
    )*};
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Named<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expecting(f)
    }

    visit! {
        visit_bool(bool);
        visit_i8(i8);
        visit_i16(i16);
        visit_i32(i32);
        visit_i64(i64);
        visit_i128(i128);
        visit_u8(u8);
        visit_u16(u16);
        visit_u32(u32);
        visit_u64(u64);
        visit_u128(u128);
        visit_f32(f32);
        visit_f64(f64);
        visit_char(char);
        visit_str(&str);
        visit_borrowed_str(&'de str);
        visit_string(String);
        visit_bytes(&[u8]);
        visit_borrowed_bytes(&'de [u8]);
        visit_byte_buf(Vec<u8>);
    }

    fn visit_none<E: Error>(self) -> Result<V::Value, E> {
        self.0.visit_none()
    }

    fn visit_unit<E: Error>(self) -> Result<V::Value, E> {
        self.0.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, from: D) -> Result<V::Value, D::Error> {
        self.0.visit_some(Named(from))
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, from: D) -> Result<V::Value, D::Error> {
        self.0.visit_newtype_struct(Named(from))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<V::Value, A::Error> {
        self.0.visit_seq(Named(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<V::Value, A::Error> {
        self.0.visit_map(Named(entries))
    }

    fn visit_enum<A: EnumAccess<'de>>(self, variant: A) -> Result<V::Value, A::Error> {
        self.0.visit_enum(Named(variant))
    }
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Fields<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expecting(f)
    }

    fn visit_unit<E: Error>(self) -> Result<V::Value, E> {
        self.0.visit_unit()
    }

    fn visit_seq<A: SeqAccess<'de>>(self, _: A) -> Result<V::Value, A::Error> {
        Err(A::Error::custom("a list is here; give an object with named fields"))
    }

    fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<V::Value, A::Error> {
        self.0.visit_map(Named(entries))
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Named<S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<S::Value, D::Error> {
        self.0.deserialize(Named(from))
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Named<A> {
    type Error = A::Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, A::Error> {
        self.0.next_element_seed(Named(seed))
    }

    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint()
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Named<A> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, A::Error> {
        self.0.next_key_seed(seed)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        self.0.next_value_seed(Named(seed))
    }

    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint()
    }
}

impl<'de, A: EnumAccess<'de>> EnumAccess<'de> for Named<A> {
    type Error = A::Error;
    type Variant = Named<A::Variant>;

    fn variant_seed<S: DeserializeSeed<'de>>(
        self,
        seed: S,
    ) -> Result<(S::Value, Self::Variant), A::Error> {
        self.0.variant_seed(seed).map(|(value, variant)| (value, Named(variant)))
    }
}

impl<'de, A: VariantAccess<'de>> VariantAccess<'de> for Named<A> {
    type Error = A::Error;

    fn unit_variant(self) -> Result<(), A::Error> {
        self.0.unit_variant()
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, A::Error> {
        self.0.newtype_variant_seed(Named(seed))
    }

    fn tuple_variant<V: Visitor<'de>>(self, len: usize, to: V) -> Result<V::Value, A::Error> {
        self.0.tuple_variant(len, Named(to))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        to: V,
    ) -> Result<V::Value, A::Error> {
        self.0.struct_variant(fields, Fields(to))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Page, Request, SetStatic, StaticEntry};

    #[test]
    fn a_list_stands_for_no_structure_at_any_depth() {
        for text in [
            r#"["alice", [], [], false]"#,
            r#"{"entries": [["web", "s1"]]}"#,
            r#"{"entries": [{"name": "web", "switch": "s1", "flow": [0, 7, "any", "output:1"]}]}"#,
            r#"{"entries": [{"name": "g", "switch": "s1", "group":
                {"id": 1, "type": "all", "buckets": [[0, null, null, "output:1"]]}}]}"#,
        ] {
            let Err(error) = serde_json::from_str::<ByName<SetStatic>>(text) else {
                panic!("{text} is taken")
            };
            assert!(error.to_string().starts_with("a list is here; give an object"), "{error}");
            // Serde takes it, or this would show nothing.
            assert!(serde_json::from_str::<SetStatic>(text).is_ok(), "{text}");
        }
        let variant = r#"{"list_hosts": [null, {"skip": 0, "limit": 1}]}"#;
        assert!(serde_json::from_str::<ByName<Request>>(variant).is_err());
        assert!(serde_json::from_str::<ByName<Page>>("[0, 5]").is_err());
    }

    #[test]
    fn lists_of_structures_with_named_fields_are_read_unchanged() {
        for value in [
            json!([
                {"name": "web", "switch": "s1", "ttl_seconds": 9, "flow": {"priority": 7, "actions": "output:1"}},
                {"name": "g", "switch": "a1", "group": {"id": 1, "type": "select", "buckets": [
                    {"weight": 1, "watch_port": "2", "actions": "output:2"}, {"watch_group": 3, "actions": ""},
                ]}},
                {"name": "m", "switch": "a1", "meter": {"id": 1, "unit": "pps", "bands": [{"rate": 5, "dscp_remark": 1}]}},
            ]),
            json!([]),
        ] {
            let ByName(read): ByName<Vec<StaticEntry>> =
                serde_json::from_value(value.clone()).unwrap();
            assert_eq!(read, serde_json::from_value::<Vec<StaticEntry>>(value).unwrap());
        }
        let form = json!({"send_messages": {"switch": "s1", "messages": ["0414000800000000"]}});
        let ByName(read): ByName<Request> = serde_json::from_value(form.clone()).unwrap();
        assert_eq!(serde_json::to_value(read).unwrap(), form);
    }
}
