//! The nouns of the C API as types.
//!
//! All are `Send` and `Sync`: no handle has thread affinity, and a second thread in a call that takes one
//! thread at a time gets BUSY. Reading methods take `&self`, those that change the state of a step `&mut self`.

use std::ptr::null_mut;

use shardrec_sys as sys;

use crate::enums::{CommProperty, Pooling, Reduction, TablePart};
use crate::error::{c_text, check, take_text, Result};
use crate::option_types::{CollectionOptions, LookupOptions, OptimizerOptions, PlanOptions, TableOptions};
use crate::options::with;
use crate::tensor::{pointer, View, ViewMut};

macro_rules! handles {
    ($($(#[$doc:meta])* $name:ident($raw:ident, $destroy:ident);)*) => {$(
        $(#[$doc])*
        pub struct $name(*mut sys::$raw);

        // SAFETY: the pointer is a ticket that is never followed; the library looks it up under its own locks.
        unsafe impl Send for $name {}
        // SAFETY: as above.
        unsafe impl Sync for $name {}

        impl $name {
            fn open(create: impl FnOnce(*mut *mut sys::$raw) -> sys::shardrec_status) -> Result<$name> {
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
    /// One rank's membership of a group of ranks.
    Comm(shardrec_comm, shardrec_comm_destroy);
    /// The tables, the features looked up in them, and how they are trained; the same on every rank.
    Model(shardrec_model, shardrec_model_destroy);
    /// Which box of which table lives on which rank.
    Plan(shardrec_plan, shardrec_plan_destroy);
    /// This rank's boxes of the sharded tables.
    Collection(shardrec_collection, shardrec_collection_destroy);
    /// A slot for one batch: begin, forward, then set_gradient and backward, or skip, or nothing.
    Lookup(shardrec_lookup, shardrec_lookup_destroy);
}

// SAFETY of every call below: handles are tickets of any value; tensors, texts and out-parameters outlive
// the call, and the library keeps none of them.

impl Local {
    /// ranks_per_node of the ranks count as one node.
    pub fn new(ranks: i32, ranks_per_node: i32) -> Result<Local> {
        Local::open(|out| unsafe { sys::shardrec_local_create(ranks, ranks_per_node, out) })
    }
}

impl Comm {
    /// Joins a local group; waits for nobody.
    pub fn join(group: &Local, rank: i32) -> Result<Comm> {
        Comm::open(|out| unsafe { sys::shardrec_comm_create_local(group.0, rank, out) })
    }

    pub fn rank(&self) -> Result<i32> {
        let mut out = 0;
        check(unsafe { sys::shardrec_comm_rank(self.0, &mut out) })?;
        Ok(out)
    }

    pub fn size(&self) -> Result<i32> {
        let mut out = 0;
        check(unsafe { sys::shardrec_comm_size(self.0, &mut out) })?;
        Ok(out)
    }

    /// Changes a property, such as a deadline, for later calls.
    pub fn set(&self, property: CommProperty, value: f64) -> Result<()> {
        check(unsafe { sys::shardrec_comm_set_f64(self.0, property.raw(), value) })
    }

    pub fn barrier(&self) -> Result<()> {
        check(unsafe { sys::shardrec_comm_barrier(self.0) })
    }

    pub fn all_reduce(&self, tensor: ViewMut<'_>, reduction: Reduction) -> Result<()> {
        check(unsafe { sys::shardrec_comm_all_reduce(self.0, &tensor.raw, reduction.raw()) })
    }

    /// Copies the elements of rank root over those of all others.
    pub fn broadcast(&self, tensor: ViewMut<'_>, root: i32) -> Result<()> {
        check(unsafe { sys::shardrec_comm_broadcast(self.0, &tensor.raw, root) })
    }

    /// out: the elements of all ranks, in rank order.
    pub fn all_gather(&self, tensor: View<'_>, out: ViewMut<'_>) -> Result<()> {
        check(unsafe { sys::shardrec_comm_all_gather(self.0, &tensor.raw, &out.raw) })
    }

    /// out: this rank's part of the reduction.
    pub fn reduce_scatter(&self, tensor: View<'_>, out: ViewMut<'_>, reduction: Reduction) -> Result<()> {
        check(unsafe { sys::shardrec_comm_reduce_scatter(self.0, &tensor.raw, &out.raw, reduction.raw()) })
    }

    /// Sends rows to every rank and receives theirs, as many as the counts say, one per rank; None: equal
    /// parts.
    pub fn all_to_all(
        &self,
        tensor: View<'_>,
        send_counts: Option<&[i64]>,
        out: ViewMut<'_>,
        receive_counts: Option<&[i64]>,
    ) -> Result<()> {
        let (sent, received) = (send_counts.map(View::vector), receive_counts.map(View::vector));
        let (sent, received) = (pointer(&sent), pointer(&received));
        check(unsafe { sys::shardrec_comm_all_to_all(self.0, &tensor.raw, sent, &out.raw, received) })
    }

    /// The communicator of the ranks that give the same color, numbered by key; None, and no part in any,
    /// for None.
    pub fn split(&self, color: Option<u16>, key: i32) -> Result<Option<Comm>> {
        let color = color.map_or(-1, i32::from);
        let part = Comm::open(|out| unsafe { sys::shardrec_comm_split(self.0, color, key, out) })?;
        Ok(if part.0.is_null() { None } else { Some(part) })
    }

    /// Ends the communicator on every rank. Any thread.
    pub fn abort(&self, reason: &str) -> Result<()> {
        let reason = c_text(reason)?;
        check(unsafe { sys::shardrec_comm_abort(self.0, reason.as_ptr()) })
    }

    /// The orderly, collective end (shardrec_comm_close). Without it, peers that wait for this rank when it
    /// is dropped fail at once.
    pub fn shutdown(&self) -> Result<()> {
        check(unsafe { sys::shardrec_comm_close(self.0) })
    }
}

impl Model {
    pub fn new() -> Result<Model> {
        Model::open(|out| unsafe { sys::shardrec_model_create(std::ptr::null(), out) })
    }

    /// Returns the table's index.
    pub fn add_table(
        &mut self,
        name: &str,
        rows: i64,
        dim: i64,
        options: Option<&TableOptions>,
    ) -> Result<i32> {
        let name = c_text(name)?;
        let mut out = 0;
        with(options.map(|o| &o.0), |made| {
            check(unsafe { sys::shardrec_model_add_table(self.0, name.as_ptr(), rows, dim, made, &mut out) })
        })?;
        Ok(out)
    }

    pub fn add_feature(&mut self, table: i32, name: &str, pooling: Pooling) -> Result<()> {
        let name = c_text(name)?;
        check(unsafe { sys::shardrec_model_add_feature(self.0, table, name.as_ptr(), pooling.raw()) })
    }

    pub fn set_optimizer(&mut self, options: &OptimizerOptions) -> Result<()> {
        with(Some(&options.0), |made| check(unsafe { sys::shardrec_model_set_optimizer(self.0, made) }))
    }

    pub fn to_json(&self) -> Result<String> {
        take_text(|out| unsafe { sys::shardrec_model_to_json(self.0, out) })
    }
}

impl Plan {
    /// Plans on the ranks of a communicator; collective.
    pub fn collective(comm: &Comm, model: &Model, options: Option<&PlanOptions>) -> Result<Plan> {
        with(options.map(|o| &o.0), |made| {
            Plan::open(|out| unsafe { sys::shardrec_plan_collective(comm.0, model.0, made, out) })
        })
    }

    /// A table for people.
    pub fn to_text(&self) -> Result<String> {
        take_text(|out| unsafe { sys::shardrec_plan_to_text(self.0, out) })
    }
}

impl Collection {
    /// Collective.
    pub fn new(
        comm: &Comm,
        model: &Model,
        plan: &Plan,
        options: Option<&CollectionOptions>,
    ) -> Result<Collection> {
        with(options.map(|o| &o.0), |made| {
            Collection::open(|out| unsafe {
                sys::shardrec_collection_create(comm.0, model.0, plan.0, made, out)
            })
        })
    }

    /// Number of applied updates.
    pub fn step(&self) -> Result<i64> {
        let mut out = 0;
        check(unsafe { sys::shardrec_collection_step(self.0, &mut out) })?;
        Ok(out)
    }

    pub fn set_learning_rate(&mut self, rate: f64) -> Result<()> {
        check(unsafe { sys::shardrec_collection_set_learning_rate(self.0, rate) })
    }

    /// Reads whole rows, wherever they live; collective.
    pub fn read(&mut self, table: i32, part: TablePart, row: i64, rows: i64, out: ViewMut<'_>) -> Result<()> {
        check(unsafe { sys::shardrec_collection_read(self.0, table, part.raw(), row, rows, &out.raw) })
    }

    /// Writes whole rows; collective.
    pub fn write(
        &mut self,
        table: i32,
        part: TablePart,
        row: i64,
        rows: i64,
        values: View<'_>,
    ) -> Result<()> {
        check(unsafe { sys::shardrec_collection_write(self.0, table, part.raw(), row, rows, &values.raw) })
    }

    /// Reads the rows that ids (i32 or i64) name, wherever they live; None: nothing. Collective.
    pub fn read_rows(
        &mut self,
        table: i32,
        part: TablePart,
        ids: Option<View<'_>>,
        out: Option<ViewMut<'_>>,
    ) -> Result<()> {
        let out = out.as_ref().map_or(std::ptr::null(), |view| &view.raw);
        check(unsafe { sys::shardrec_collection_read_rows(self.0, table, part.raw(), pointer(&ids), out) })
    }

    /// Writes the rows that ids name; as read_rows.
    pub fn write_rows(
        &mut self,
        table: i32,
        part: TablePart,
        ids: Option<View<'_>>,
        values: Option<View<'_>>,
    ) -> Result<()> {
        let (ids, values) = (pointer(&ids), pointer(&values));
        check(unsafe { sys::shardrec_collection_write_rows(self.0, table, part.raw(), ids, values) })
    }
}

impl Lookup {
    pub fn new(collection: &Collection, options: Option<&LookupOptions>) -> Result<Lookup> {
        with(options.map(|o| &o.0), |made| {
            Lookup::open(|out| unsafe { sys::shardrec_lookup_create(collection.0, made, out) })
        })
    }

    /// Starts the exchange of a batch's ids. values None: this rank has no more data.
    pub fn begin(
        &mut self,
        batch_size: i64,
        values: Option<View<'_>>,
        lengths: Option<View<'_>>,
        weights: Option<View<'_>>,
    ) -> Result<()> {
        let (values, lengths, weights) = (pointer(&values), pointer(&lengths), pointer(&weights));
        check(unsafe { sys::shardrec_lookup_begin(self.0, batch_size, values, lengths, weights) })
    }

    /// Finishes the exchange and writes an output.
    pub fn forward(&mut self, output: i32, out: ViewMut<'_>) -> Result<()> {
        check(unsafe { sys::shardrec_lookup_forward(self.0, output, &out.raw) })
    }

    /// True when no rank has more data; valid after forward.
    pub fn all_done(&self) -> Result<bool> {
        let mut out = 0;
        check(unsafe { sys::shardrec_lookup_all_done(self.0, &mut out) })?;
        Ok(out != 0)
    }

    /// Gives the gradient of this rank's loss with respect to an output.
    pub fn set_gradient(&mut self, output: i32, gradient: View<'_>) -> Result<()> {
        check(unsafe { sys::shardrec_lookup_set_gradient(self.0, output, &gradient.raw) })
    }

    /// Sends the gradients before backward is called, which must follow: they travel meanwhile.
    pub fn send_gradients(&mut self) -> Result<()> {
        check(unsafe { sys::shardrec_lookup_send_gradients(self.0, 0) })
    }

    /// Exchanges the gradients and applies one optimizer step.
    pub fn backward(&mut self) -> Result<()> {
        check(unsafe { sys::shardrec_lookup_backward(self.0) })
    }

    /// In place of backward: no rank applies the step.
    pub fn skip(&mut self) -> Result<()> {
        check(unsafe { sys::shardrec_lookup_skip(self.0) })
    }
}
