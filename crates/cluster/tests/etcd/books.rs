//! Orders of several controllers, and their leader, with three members of etcd.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bellrock_api::runtime::EmptyNetwork;
use bellrock_book::{BookModel, Draft, EntryBook, NotOrdered, Words};
use bellrock_cluster::SharedStores;

use crate::servers::{Cluster, within};

/// Number of orders for one place, at two controllers at once.
const ROUNDS: usize = 50;
/// Number of orders that are measured, and of those that wait at each controller at a time.
const MEASURED: usize = 6000;
const WAITING: usize = 64;

/// Texts, without more to know of all of them.
#[derive(Default)]
struct Texts;

impl BookModel for Texts {
    type Value = String;

    fn read(_: &str, value: &str) -> Result<String, String> {
        Words::parse(value)?.read("text")
    }

    fn show(value: &String) -> String {
        Words::default().with("text", value).show()
    }

    fn change(&mut self, _: &str, _: Option<&String>, _: Option<&String>) {}
}

type Texted = EntryBook<Texts>;

/// A controller: its stores, whose thread ends with them, and its book.
fn controller(
    cluster: &Cluster,
    node: &str,
) -> (SharedStores, Texted, tokio::task::JoinHandle<()>) {
    let nodes = ["a", "b", "c"].map(str::to_owned).to_vec();
    let stores = SharedStores::with_client(cluster.client(), nodes).unwrap();
    let book = Texted::shared(Arc::new(stores.open("texts")), node.to_owned());
    let task = tokio::spawn(book.clone().run(EmptyNetwork::network()));
    (stores, book, task)
}

/// Writes the entry `name`, unless it exists.
async fn take(book: &Texted, name: &str, text: &str) -> Result<(), NotOrdered<&'static str>> {
    let (name, text) = (name.to_owned(), text.to_owned());
    let plan = move |draft: &mut Draft<'_, Texts>| {
        if draft.value(&name).is_some() {
            return Err("it is taken");
        }
        draft.put(&name, text.clone());
        Ok(())
    };
    book.order(plan).await
}

async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let wait = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    within(wait, what).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_orders_at_once_one_is_carried_out() {
    let cluster = Cluster::start(3).await;
    let (_here, one, _) = controller(&cluster, "a");
    let (_there, other, _) = controller(&cluster, "b");
    until("both have read etcd", || one.is_read() && other.is_read()).await;
    for round in 0..ROUNDS {
        let name = format!("place/{round}");
        let both = futures_lite::future::zip(take(&one, &name, "a"), take(&other, &name, "b"));
        let (first, second) = within(both, "two orders").await;
        let winner = match (first, second) {
            (Ok(()), Err(NotOrdered::Refused("it is taken"))) => "a",
            (Err(NotOrdered::Refused("it is taken")), Ok(())) => "b",
            outcomes => panic!("round {round}: {outcomes:?}"),
        };
        let has = |book: &Texted| book.value(&name).is_some_and(|text| *text == winner);
        until("both see it", || has(&one) && has(&other)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_controller_leads_when_the_lease_of_the_first_is_over() {
    let cluster = Cluster::start(3).await;
    let (first_stores, first, task) = controller(&cluster, "a");
    until("a leads", || first.is_leader()).await;
    let (_stores, second, _) = controller(&cluster, "b");
    until("b knows", || second.is_read() && second.is_alive("a")).await;
    assert!(!second.is_leader());
    // It ends without a word, as by kill -9: nobody renews its lease.
    task.abort();
    drop((first, first_stores));
    until("b leads", || second.is_leader()).await;
    assert!(!second.is_alive("a"));
    // One that starts again does not lead.
    let (_again, first, _) = controller(&cluster, "a");
    until("b sees it", || second.is_alive("a") && first.is_alive("b")).await;
    assert!(second.is_leader() && !first.is_leader());
}

/// The lease of the books' leaders, as etcd has it.
const LEASE: Duration = Duration::from_secs(3);

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_etcd_does_not_answer_gives_up_before_its_lease_is_over() {
    let cluster = Cluster::start(3).await;
    let (_here, one, _) = controller(&cluster, "a");
    until("a leads", || one.lead_lease().is_some()).await;
    let lease = one.lead_lease();
    // A few signs of life: the lease is the same.
    tokio::time::sleep(LEASE).await;
    assert_eq!(one.lead_lease(), lease);
    (0..3).for_each(|member| cluster.pause(member));
    let paused = Instant::now();
    assert!(one.lead_lease().is_some(), "one lost answer is nothing");
    until("it gives up", || one.lead_lease().is_none()).await;
    assert!(paused.elapsed() < LEASE, "{:?} after the last answer", paused.elapsed());
    (0..3).for_each(|member| cluster.resume(member));
    until("it leads again", || one.lead_lease().is_some()).await;
}

/// Orders of three controllers, each with some that wait: `cargo test -p bellrock-cluster --test
/// etcd -- --ignored --nocapture orders_per_second`.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "it measures"]
async fn orders_per_second() {
    let cluster = Cluster::start(3).await;
    let all = ["a", "b", "c"].map(|node| controller(&cluster, node));
    for (_, book, _) in &all {
        until("it has read etcd", || book.is_read()).await;
    }
    // As long as a reservation over four switches.
    let text = "x".repeat(400);
    for count in [1, 3] {
        let began = Instant::now();
        let mut tasks = Vec::new();
        for (_, book, _) in &all[..count] {
            for worker in 0..WAITING {
                let (book, text) = (book.clone(), text.clone());
                tasks.push(tokio::spawn(async move {
                    for number in 0..MEASURED / count / WAITING {
                        let name = format!("{count}/{}/{worker}/{number}", book.node());
                        while let Err(error) = take(&book, &name, &text).await {
                            assert!(matches!(error, NotOrdered::Unavailable(_)), "{error}");
                        }
                    }
                }));
            }
        }
        for task in tasks {
            task.await.unwrap();
        }
        let orders = MEASURED / count / WAITING * WAITING * count;
        let rate = orders as f64 / began.elapsed().as_secs_f64();
        println!(
            "{orders} orders at {count} controllers, {WAITING} waiting at each: {rate:.0} a second"
        );
    }
}
