//! Questions that the context has no room for beside the others.

use super::*;

#[test]
fn questions_wait_for_room_in_the_context_and_none_is_overtaken() {
    let index = index();
    let question = |number: usize| format!("question {number} has more tokens than its search");
    let long = question(2).repeat(2);
    let cells = |question: &str| {
        let tokens = index.question().encode_question(&Bytes, question);
        tokens.expect("encodes").len() + 2 * index.longest_title() as usize
    };
    let mut model = Mock::new(4096, 4096);
    // For two of them; beside the long one there is room for no other, and the model sees to it.
    let room = 2 * cells(&question(0));
    assert!(cells(&long) <= room && cells(&long) + cells(&question(0)) > room);
    model.capacity.context = index.prefix().len() + room;
    serve(model, |index, queue, control| {
        let gate = control.gate.lock();
        let questions = [question(0), question(1), long, question(3), question(4)];
        std::thread::scope(|scope| {
            let mut callers = Vec::new();
            for (before, question) in questions.iter().enumerate() {
                callers.push(scope.spawn(|| queue.ask(request(index, question, 3))));
                // The first is in flight, the others wait in this order.
                match before {
                    0 => control.await_decode(1),
                    _ => eventually(|| queue.count_waiting() == before, "they ask in turn"),
                }
            }
            drop(gate);
            for (caller, question) in callers.into_iter().zip(&questions) {
                let outcome = caller.join().expect("returns").expect("answers");
                assert_eq!(outcome.found, alone(index, question, 3), "{question}");
            }
        });
        let flights = |decode: &Vec<u16>| {
            let seqs = decode.iter().filter(|&&seq| seq != 0);
            let mut flights: Vec<_> = seqs.map(|seq| usize::from(seq - 1) / STATES).collect();
            flights.sort_unstable();
            flights.dedup();
            flights.len()
        };
        let mut together: Vec<usize> = control.log.lock().iter().map(flights).collect();
        assert_eq!(together.iter().max(), Some(&2));
        together.dedup();
        // The prefix, two of them, the long one by itself, two of them.
        assert!(together.starts_with(&[0, 2, 1, 2]), "{together:?}");
    });
}
