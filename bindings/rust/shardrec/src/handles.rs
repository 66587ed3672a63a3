//! The nouns of the C API as types.
//!
//! All are `Send` and `Sync`: no handle has thread affinity, and a second thread in a call that takes one
//! thread at a time gets BUSY. Reading methods take `&self`, and all of a scorer's; those that change the state of a
//! step `&mut self`.

use std::ptr::null_mut;

use shardrec_sys as sys;

use crate::error::{check, Result};

macro_rules! handles {
    ($($(#[$doc:meta])* $name:ident($raw:ident, $destroy:ident);)*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name(pub(crate) *mut sys::$raw);

        // SAFETY: the pointer is a ticket that is never followed; the library looks it up under its own locks.
        unsafe impl Send for $name {}
        // SAFETY: as above.
        unsafe impl Sync for $name {}

        impl $name {
            pub(crate) fn made_by(create: impl FnOnce(*mut *mut sys::$raw) -> sys::shardrec_status) -> Result<$name> {
                let mut out = null_mut();
                check(create(&mut out))?;
                Ok($name(out))
            }

            /// For calls of `sys`; still this object's to destroy.
            pub fn as_raw(&self) -> *mut sys::$raw {
                self.0
            }

            /// For calls of `sys`; the caller's to destroy.
            pub fn into_raw(self) -> *mut sys::$raw {
                std::mem::ManuallyDrop::new(self).0
            }

            /// Takes over a handle.
            ///
            /// # Safety
            /// Nobody else destroys it.
            pub unsafe fn from_raw(raw: *mut sys::$raw) -> $name {
                $name(raw)
            }
        }

        impl Drop for $name {
            fn drop(&mut self) {
                // SAFETY: the handle is ours.
                unsafe { sys::$destroy(&mut self.0) }
            }
        }
    )*};
}

handles! {
    /// A group of ranks that are threads of this process.
    Local(shardrec_local, shardrec_local_destroy);
    /// One rank's membership of a group of ranks. It must live as long as what is made on it is used.
    Comm(shardrec_comm, shardrec_comm_destroy);
    /// Where the processes of a group meet.
    Rendezvous(shardrec_rendezvous, shardrec_rendezvous_destroy);
    /// A long call's progress, and its end before time, from any thread.
    Control(shardrec_control, shardrec_control_destroy);
    /// The tables, the features looked up in them, and how they are trained; the same on every rank.
    Model(shardrec_model, shardrec_model_destroy);
    /// What the machines can do.
    Topology(shardrec_topology, shardrec_topology_destroy);
    /// Which box of which table lives on which rank.
    Plan(shardrec_plan, shardrec_plan_destroy);
    /// This rank's boxes of the sharded tables.
    Collection(shardrec_collection, shardrec_collection_destroy);
    /// A slot for one batch: begin, forward, then set_gradient and backward, or skip, or nothing.
    Lookup(shardrec_lookup, shardrec_lookup_destroy);
    /// A communicator arranged as replicas of sharded groups.
    Mesh(shardrec_mesh, shardrec_mesh_destroy);
    /// A stack of layers.
    Mlp(shardrec_mlp, shardrec_mlp_destroy);
    /// Sharded dense parameters of this rank.
    Fsdp(shardrec_fsdp, shardrec_fsdp_destroy);
    /// Dot products of a dense vector and embeddings.
    Interaction(shardrec_interaction, shardrec_interaction_destroy);
    /// One commit of a whole model.
    Checkpoint(shardrec_checkpoint, shardrec_checkpoint_destroy);
    /// Read-only serving of a checkpoint, without a communicator: any number of threads call one scorer at once.
    Scorer(shardrec_scorer, shardrec_scorer_destroy);
    /// Metrics of predictions, over all ranks.
    Metrics(shardrec_metrics, shardrec_metrics_destroy);
    /// Zeros on a device or on the CPU; tensors borrow it.
    Memory(shardrec_memory, shardrec_memory_destroy);
}
