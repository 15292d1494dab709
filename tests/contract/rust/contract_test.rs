// SPDX-License-Identifier: Apache-2.0
//
// Runs the Rust of docs/c_api.md against a real broker. Environment: OJS_SHM_BROKER, OJS_SHM_DIR.

mod qo_example;

use std::future::Future;
use std::io::{BufRead, BufReader};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::process::{Child, Command, Stdio};
use std::ptr::null;
use std::task::{Context, Poll, RawWaker, RawWakerVTable, Waker};

use ojs_shm::{json, Error, Priority, Queue, Worker};

const BOUND_MS: i64 = 30_000;
const EMPTY: i32 = -13;
const CANNOT_ATTACH: i32 = -3;
const INVALID: i32 = -2;

/// The binding's futures are ready at the first look; one that is not would be a mistake of the binding.
fn ready<T>(future: impl Future<Output = T>) -> T {
    const STILL: RawWakerVTable = RawWakerVTable::new(|_| RawWaker::new(null(), &STILL), |_| {}, |_| {}, |_| {});
    let waker = unsafe { Waker::from_raw(RawWaker::new(null(), &STILL)) };
    match Box::pin(future).as_mut().poll(&mut Context::from_waker(&waker)) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("the future waited"),
    }
}

/// A broker with the convention of qo; it is stopped when the test ends, whichever way.
struct Broker(Child);

impl Broker {
    fn start(name: &str) -> Broker {
        let program = std::env::var("OJS_SHM_BROKER").expect("OJS_SHM_BROKER");
        let mut child = Command::new(program)
            .args(["--name", name, "--convention", "qo"])
            .stdout(Stdio::piped())
            .spawn()
            .expect("the broker starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("stdout")).read_line(&mut line).expect("a line");
        let broker = Broker(child);
        assert_eq!(line, format!("READY name={}\n", name));
        broker
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn qo_05_rust_builder_of_qo_submits_by_priority() -> Result<(), Error> {
    let _broker = Broker::start("my-queue");
    ready(qo_example::submit_three())?;
    let mut worker = Worker::connect("my-queue")?;
    let wanted = [
        ("send_alert", Priority::CRITICAL, r#"[{"message": "Server down!"}]"#),
        ("send_email", Priority::NORMAL, r#"[{"to": "user@example.com"}]"#),
        ("cleanup_old_files", Priority::LOW, r#"[{"days_old": 30}]"#),
    ];
    for (job_type, priority, args) in wanted {
        let job = worker.fetch(BOUND_MS)?;
        assert_eq!((job.job_type.as_str(), job.priority, job.attempt), (job_type, i64::from(priority), 1));
        let without_spaces = |text: &str| text.replace(' ', "");
        assert_eq!(without_spaces(&job.args), without_spaces(args));
        assert_eq!(job.id.len(), 36);
        worker.complete(json!({"done": true}))?;
    }
    assert_eq!(worker.fetch(0).err().map(|error| error.code), Some(EMPTY));
    Ok(())
}

fn qo_05_rust_names_and_numbers_are_the_same() -> Result<(), Error> {
    let _broker = Broker::start("numbers");
    let queue = ready(Queue::connect("numbers"))?;
    let named = [Priority::BULK, Priority::BACKGROUND, Priority::HIGH, Priority::URGENT];
    for priority in named {
        ready(queue.submit("ranked").priority(priority).send())?;
    }
    ready(queue.submit("ranked").priority(255).input("[1, 2]").send())?;
    let mut worker = Worker::connect("numbers")?;
    for priority in [255, 200, 175, 10, 0] {
        assert_eq!(worker.fetch(BOUND_MS)?.priority, priority);
        worker.complete("")?;
    }
    Ok(())
}

fn rust_errors_have_a_code_and_a_text() -> Result<(), Error> {
    let _broker = Broker::start("errors");
    let queue = ready(Queue::connect("errors"))?;
    let refused = ready(queue.submit("Not A Type").send()).err().expect("a type like this is refused");
    assert_eq!(refused.code, INVALID);
    assert!(refused.message.contains("type"), "{}", refused.message);
    let absent = ready(Queue::connect("nobody")).err().expect("nobody made this segment");
    assert_eq!(absent.code, CANNOT_ATTACH);
    assert!(absent.message.contains("nobody"), "{}", absent.message);
    Ok(())
}

fn main() {
    let tests: [(&str, fn() -> Result<(), Error>); 3] = [
        ("QO_05_rust_builder_of_qo_submits_by_priority", qo_05_rust_builder_of_qo_submits_by_priority),
        ("QO_05_rust_names_and_numbers_are_the_same", qo_05_rust_names_and_numbers_are_the_same),
        ("rust_errors_have_a_code_and_a_text", rust_errors_have_a_code_and_a_text),
    ];
    let mut failed = 0;
    for (name, test) in tests {
        match catch_unwind(AssertUnwindSafe(test)) {
            Ok(Ok(())) => println!("ok {}", name),
            Ok(Err(error)) => {
                eprintln!("{}: {:?}", name, error);
                println!("not ok {}", name);
                failed += 1;
            }
            Err(_) => {
                println!("not ok {}", name);
                failed += 1;
            }
        }
    }
    std::process::exit(if failed == 0 { 0 } else { 1 });
}
