//! Settings in any order, questions without a socket, and chains that do not start.

use bellrock_apps::{Hub, Learning};

use super::*;

#[test]
fn single_settings_override_all_of_them_in_any_order() {
    let all = || EngineSettings { workers: 3, ..EngineSettings::default() };
    let first = Controller::builder().workers(1).standby().engine(all());
    let last = Controller::builder().engine(all()).workers(1).standby();
    for mut builder in [first, last] {
        let settings = builder.take_settings();
        assert_eq!(settings.workers, 1);
        assert_eq!(settings.worker.session.first_role, FirstRole::Standby);
    }
}

#[cfg(feature = "control")]
#[test]
fn a_face_in_the_same_process_asks_as_the_socket_does() {
    let controller = Controller::builder().app(Hub).listen(([127, 0, 0, 1], 0)).start().unwrap();
    let status = controller.operator().ask(bellrock_query::GetStatus {}).unwrap();
    assert_eq!((&*status.listen, &*status.apps), (controller.addresses(), &["hub".to_owned()][..]));
    controller.stop();
}

#[test]
fn a_chain_in_which_an_app_gets_nothing_does_not_start() {
    let controller = Controller::builder().app(Hub).app(Learning::default());
    let error = controller.listen(([127, 0, 0, 1], 0)).start().err().map(|error| error.to_string());
    let error = error.unwrap_or_default();
    assert!(error.contains("\"learning\" stands behind \"hub\""), "{error}");
    assert!(error.contains("leave one of the two out"), "{error}");
}
