//! Attacks on every bound by simulated schedules. The tests are one program, so that it is linked once.

mod attacked;
mod bounds_hold;
mod bpl;
mod clusters_hold;
mod counterexamples;
mod edf_programs_hold;
mod edf_resources_hold;
mod global_bounds_hold;
mod global_overheads_hold;
mod global_resources_hold;
mod global_semaphores_hold;
mod late_jobs;
mod long_resources_hold;
mod overheads_hold;
mod own_owners;
mod programs_hold;
mod protocols_hold;
mod readers_writers;
mod schedules_stay;
mod semaphores_hold;
mod spin_hold;
mod terms_sum;
mod ticks;
mod verdicts_agree;
