//! How soon a thread that wakes up gets a processor that others use.
//!
//! The kernel's scheduler (EEVDF) gives a processor to the thread whose deadline is next, and a deadline is as far away as the
//! thread's time slice is long. A thread that works for some microseconds at a time and asks for a short slice is served
//! before others when it wakes up, and gets no larger share than before. That matters where a receiver shares processors:
//! with the source, or with hundreds of other sources.
//!
//! Threads that such a thread starts do not get the short slice: they sync, search and compare for milliseconds, and would take
//! the processor from the source each time they wake up. The kernel has no way to reset the slice alone for them: a flag of the
//! thread resets the slice and a negative nice value with it. So a thread to which an operator gave a negative one does without
//! the flag.
//!
//! Source of the facts: sched_setattr(2); sched(7), "The reset-on-fork flag"; the kernel's
//! `Documentation/scheduler/sched-eevdf.rst`: a slice of one's own from Linux 6.12 on, of 0.1 to 100 ms. Older kernels take the
//! call and change nothing.

use std::time::Duration;

/// The slice of a thread that receives: the shortest that the kernel gives. It is far longer than the thread works at a time.
pub const TIME_SLICE: Duration = Duration::from_micros(100);

/// Gives this thread a short time slice ([`TIME_SLICE`]), and the usual one to the threads that it starts. False when it was left as it is: an operator has given the thread
/// another policy than the usual one, the kernel is older than 6.12, or something in between does not let the call through.
pub fn shorten_time_slice() -> bool {
    imp::shorten_time_slice()
}

#[cfg(target_os = "linux")]
mod imp {
    use super::TIME_SLICE;

    const SIZE: u32 = size_of::<libc::sched_attr>() as u32;
    const THIS_THREAD: libc::c_long = 0;
    const NO_FLAGS: libc::c_long = 0;

    pub(super) fn shorten_time_slice() -> bool {
        let slice = TIME_SLICE.as_nanos() as u64;
        let Some(mut attributes) = attributes() else { return false };
        if attributes.sched_policy != libc::SCHED_OTHER as u32 {
            return false;
        }
        // With all that it has beside, the nice value above all.
        (attributes.size, attributes.sched_runtime) = (SIZE, slice);
        if attributes.sched_nice >= 0 {
            attributes.sched_flags |= libc::SCHED_FLAG_RESET_ON_FORK as u64;
        }
        // A kernel that has no slices of their own says nothing, so it is read back.
        set(&attributes) && self::attributes().is_some_and(|now| now.sched_runtime == slice)
    }

    #[expect(unsafe_code, reason = "a call of the kernel that no crate wraps")]
    pub(super) fn attributes() -> Option<libc::sched_attr> {
        // SAFETY: the structure consists of numbers, for which zeros are right.
        let mut attributes: libc::sched_attr = unsafe { std::mem::zeroed() };
        // SAFETY: the kernel writes no more than SIZE bytes to a structure of that size that lives here.
        let result = unsafe {
            libc::syscall(libc::SYS_sched_getattr, THIS_THREAD, &raw mut attributes, SIZE, NO_FLAGS)
        };
        (result == 0).then_some(attributes)
    }

    #[expect(unsafe_code, reason = "a call of the kernel that no crate wraps")]
    pub(super) fn set(attributes: &libc::sched_attr) -> bool {
        // SAFETY: the kernel reads the structure, whose size it holds.
        unsafe { libc::syscall(libc::SYS_sched_setattr, THIS_THREAD, &raw const *attributes, NO_FLAGS) == 0 }
    }
}

#[cfg(not(target_os = "linux"))]
mod imp {
    pub(super) fn shorten_time_slice() -> bool {
        false
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    /// In a thread of its own: the runner's is used for other tests.
    fn in_a_thread<T: Send + 'static>(of: impl FnOnce() -> T + Send + 'static) -> T {
        std::thread::spawn(of).join().unwrap()
    }

    fn kernel_has_slices() -> bool {
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
        let mut numbers = release.split(['.', '-']).map(|number| number.parse::<u32>().unwrap_or_default());
        (numbers.next(), numbers.next()) >= (Some(6), Some(12))
    }

    #[test]
    fn the_slice_is_short_and_everything_else_stays() {
        let (before, permitted, shortened, after) = in_a_thread(|| {
            let before = imp::attributes().unwrap();
            // In a sandbox the call may be refused.
            let permitted = imp::set(&before);
            (before, permitted, shorten_time_slice(), imp::attributes().unwrap())
        });
        assert_eq!((before.sched_policy, before.sched_nice), (after.sched_policy, after.sched_nice));
        // A kernel may have slices of their own before its number says so.
        assert!(shortened || !(permitted && kernel_has_slices()));
        assert_eq!(shortened, after.sched_runtime == TIME_SLICE.as_nanos() as u64);
    }

    #[test]
    fn a_thread_that_it_starts_has_the_usual_slice() {
        let (before, child) = in_a_thread(|| {
            let before = imp::attributes().unwrap();
            shorten_time_slice();
            (before, in_a_thread(|| imp::attributes().unwrap()))
        });
        assert_eq!(
            (before.sched_policy, before.sched_nice, before.sched_runtime),
            (child.sched_policy, child.sched_nice, child.sched_runtime)
        );
    }

    #[test]
    #[expect(unsafe_code, reason = "a call of the kernel that no crate wraps")]
    fn a_policy_that_somebody_has_chosen_stays() {
        let (shortened, policy) = in_a_thread(|| {
            // SAFETY: numbers, for which zeros are right: SCHED_BATCH has the priority 0.
            let parameters: libc::sched_param = unsafe { std::mem::zeroed() };
            // SAFETY: it reads the structure, for this thread.
            assert_eq!(unsafe { libc::sched_setscheduler(0, libc::SCHED_BATCH, &parameters) }, 0);
            (shorten_time_slice(), imp::attributes().unwrap().sched_policy)
        });
        assert_eq!((shortened, policy), (false, libc::SCHED_BATCH as u32));
    }
}
