//! The simulator in a browser: bare functions over the memory of the module, without bindings. `web/src/simulator.ts`
//! calls them.
//!
//! A module holds one run at a time. Text goes in and out as UTF-8. [`exports::input`] makes room for the input.
//! [`exports::output`] and [`exports::output_length`] give the place of the last answer.

fn main() {}

#[cfg(target_arch = "wasm32")]
mod exports {
    use std::cell::RefCell;

    use polypath_web::Run;

    #[derive(Default)]
    struct State {
        input: Vec<u8>,
        output: Vec<u8>,
        run: Option<Run>,
    }

    thread_local! {
        static STATE: RefCell<State> = RefCell::default();
    }

    /// What a call came to, as its number.
    #[derive(Clone, Copy)]
    #[repr(u32)]
    enum Answer {
        /// It goes on.
        Running = 0,
        /// It is over, or done.
        Done = 1,
        /// The output says in one line why not.
        Failed = 2,
    }

    fn with(work: impl FnOnce(&mut State) -> Result<Answer, String>) -> u32 {
        STATE.with_borrow_mut(|state| {
            let answer = work(state).unwrap_or_else(|error| {
                state.run = None;
                state.output = error.into_bytes();
                Answer::Failed
            });
            answer as u32
        })
    }

    /// Where `length` bytes of input are to be written.
    #[unsafe(no_mangle)]
    pub extern "C" fn input(length: usize) -> *mut u8 {
        STATE.with_borrow_mut(|state| {
            state.input = vec![0; length];
            state.input.as_mut_ptr()
        })
    }

    /// Where the last answer's text begins.
    #[unsafe(no_mangle)]
    pub extern "C" fn output() -> *const u8 {
        STATE.with_borrow(|state| state.output.as_ptr())
    }

    /// Bytes of the last answer's text.
    #[unsafe(no_mangle)]
    pub extern "C" fn output_length() -> usize {
        STATE.with_borrow(|state| state.output.len())
    }

    /// Begins the run of the plan that the input is, in JSON; one that was there before is dropped.
    #[unsafe(no_mangle)]
    pub extern "C" fn begin() -> u32 {
        with(|state| {
            state.run = None;
            let plan = String::from_utf8(std::mem::take(&mut state.input))
                .map_err(|error| error.to_string())?;
            state.run = Some(Run::new(&plan)?);
            Ok(Answer::Running)
        })
    }

    /// Advances to a time in nanoseconds.
    #[unsafe(no_mangle)]
    pub extern "C" fn step(until_ns: f64) -> u32 {
        with(|state| {
            let run = state.run.as_mut().ok_or("no run has begun")?;
            let over = run.step(until_ns as u64)?;
            Ok(if over { Answer::Done } else { Answer::Running })
        })
    }

    /// The simulated time in nanoseconds.
    #[unsafe(no_mangle)]
    pub extern "C" fn now() -> f64 {
        STATE.with_borrow(|state| state.run.as_ref().map_or(0.0, |run| run.now() as f64))
    }

    /// Ends the run; the output is what it left.
    #[unsafe(no_mangle)]
    pub extern "C" fn finish() -> u32 {
        with(|state| {
            let run = state.run.take().ok_or("no run has begun")?;
            state.output = run.finish()?.into_bytes();
            Ok(Answer::Done)
        })
    }
}
