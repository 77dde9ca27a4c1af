//! Tests for all versions of OpenFlow.

/// Makes a test of each function for each version of OpenFlow. For `reach` they are `reach::on_1_0`
/// and `reach::on_1_3`.
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
    ($($test:ident),* $(,)?) => {
        // A version without a test below does not compile.
        const _: fn($crate::lab::Version) = |version| match version {
            $crate::lab::Version::V1_0 | $crate::lab::Version::V1_3 => {}
        };
        $(
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
        )*
    };
}
