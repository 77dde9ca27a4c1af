//! Tests for both versions of OpenFlow.

/// Makes two tests of each function: one calls it with OpenFlow 1.0, one with 1.3. For `reach` they
/// are `reach::on_1_0` and `reach::on_1_3`.
///
/// ```
/// use bellrock_apps::Learning;
/// use bellrock_emulator::lab::{Lab, Version, on_both_versions};
/// use bellrock_emulator::topology::tree;
///
/// on_both_versions!(reach);
///
/// fn reach(version: Version) {
///     let mut lab = Lab::seeded(42).topology(tree(2, 3)).version(version).run(Learning::default());
///     assert!(lab.ping_all().is_complete());
/// }
/// # reach(Version::V1_0);
/// ```
#[macro_export]
macro_rules! on_both_versions {
    ($($test:ident),* $(,)?) => {$(
        mod $test {
            #[test]
            fn on_1_0() {
                super::$test($crate::lab::Version::V1_0);
            }

            #[test]
            fn on_1_3() {
                super::$test($crate::lab::Version::V1_3);
            }
        }
    )*};
}
