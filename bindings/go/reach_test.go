package shardrec_test

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	. "shardrec.org/shardrec"
)

// Every method of every handle, for what it is there for; bindings/run counts the functions of C that were called.

func ok(t *testing.T, holds bool, what ...any) {
	t.Helper()
	if !holds {
		t.Error(what...)
	}
}

func TestTheLibraryItself(t *testing.T) {
	ok(t, strings.Contains(must(CapabilitiesJSON()), "engines"))
	err := errors.Join(SetLogLevel(LogLevelWarning), TraceStart(1000))
	if message := must(NextLogMessage(0)); message != nil {
		t.Error(message)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, cancelled := ProbeJSON(ctx, "cpu", 1, false)
	ok(t, errors.Is(cancelled, context.Canceled), cancelled)
	ctx, cancel = context.WithTimeout(context.Background(), 100*time.Millisecond)
	_, cancelled = ProbeJSON(ctx, "cpu", 1, false) // takes three seconds
	cancel()
	ok(t, errors.Is(cancelled, context.DeadlineExceeded) && errors.Is(cancelled, ErrCancelled), cancelled)
	control := must(NewControl())
	err = errors.Join(err, control.Cancel())
	_, cancelled = ProbeJSON(WithControl(context.Background(), control), "", 1, false)
	ok(t, errors.Is(cancelled, ErrCancelled) && must(control.Progress()).Done == 0, cancelled)
	control.Close()
	probed, failure := ProbeJSON(context.Background(), "", 0, true)
	if errors.Is(failure, ErrNotFound) {
		probed, failure = ProbeJSON(context.Background(), "", 1, false)
	}
	ok(t, strings.Contains(probed, "{") && strings.Contains(must(TraceJSON()), "traceEvents"), failure)
	TraceStop()
	none := must(IsAvailable(CapabilityDevice, "tpu"))
	ok(t, must(IsAvailable(CapabilityEngine, "local")) == Available{Available: true} && !none.Available && strings.Contains(none.Reason, "tpu"), none)
	gradient, probabilities := make([]float32, 2), make([]float32, 2)
	loss := must(BceWithLogits(nil, Vector([]float32{0, 0}), Vector([]float32{1, 0}), Vector(probabilities), Vector(gradient)))
	ok(t, math.Abs(loss-math.Ln2) < 1e-6 && probabilities[0] == 0.5 && gradient[0] == -0.25, loss)
	ok(t, must(new(PlanOptions).BatchSize(7).Int(OptionBatchSize)) == 7 && must(new(PlanOptions).BagLength(2).Float(OptionBagLength)) == 2)
	if err != nil {
		t.Error(err)
	}
}

func reachModel() *Model {
	model, adagrad := must(NewModel()), new(OptimizerOptions).Optimizer(OptimizerAdagrad).LearningRate(1)
	a, b := must(model.AddTable("a", 10, 4, new(TableOptions).Init(InitZeros))), must(model.AddTable("b", 6, 2, nil))
	must(0, errors.Join(model.SetOptimizer(AllTables, adagrad), model.SetOptimizer(b, adagrad.LearningRate(0.5)),
		model.AddFeature(a, "x", PoolingSum), model.AddFeature(b, "y", PoolingMean)))
	return model
}

func TestPlansByHand(t *testing.T) {
	model, topology := reachModel(), must(NewTopology(2, 2))
	ok(t, must(model.Info()) == ModelInfo{Tables: 2, Features: 2, Width: 6})
	ok(t, must(model.Table(1)) == ModelTable{Rows: 6, Dim: 2, Dtype: DtypeFloat32, Optimizer: OptimizerAdagrad, LearningRate: 0.5, States: 1, Features: 1, Name: "b"})
	ok(t, must(model.Feature(1)) == ModelFeature{Table: 1, Pooling: PoolingMean, Column: 4, Columns: 2, Width: 6, Name: "y"})
	same, other := must(ModelFromJSON(must(model.ToJSON()))), must(TopologyFromJSON(must(topology.ToJSON())))
	plan := must(NewPlan(same, other, new(PlanOptions).Sharding(ShardingRowWise)))
	again := must(PlanFromJSON(model, must(plan.ToJSON())))
	empty := must(NewEmptyPlan(model, topology))
	err := errors.Join(plan.Check(), empty.AddBox(0, 1, 0, 10, 0, 4), empty.Replicate(1, ReplicationSamples),
		empty.Replicate(1, ReplicationRows), empty.Check())
	ok(t, err == nil && strings.Contains(must(plan.ToText()), "a") && must(again.BoxCount(0)) == must(plan.BoxCount(0)), err)
	ok(t, must(empty.Box(0, 0)) == PlanBox{Rank: 1, Rows: 10, Cols: 4, WeightBytes: 160, StateBytes: 160})
	for _, handle := range []interface{ Close() error }{model, topology, same, other, plan, again, empty} {
		handle.Close()
	}
}

func onRanks(t *testing.T, body func(comm *Comm) error) {
	t.Helper()
	err := Run(2, func(comm *Comm) error { return errors.Join(body(comm), comm.Shutdown()) })
	if err != nil {
		t.Error(err)
	}
}

func TestLookupsInEveryForm(t *testing.T) {
	onRanks(t, func(comm *Comm) error {
		sum := []float32{1, float32(must(comm.Rank()))}
		err := errors.Join(comm.Check(), comm.AllReduce(Vector(sum), ReductionSum))
		ok(t, sum[0] == 2 && sum[1] == 1 && must(comm.Get(CommPropertyStepSeconds)) == 600, sum)
		model := reachModel()
		defer model.Close()
		plan := must(NewCollectivePlan(comm, nil, model, nil))
		defer plan.Close()
		tables := must(NewCollection(comm, nil, model, plan, nil))
		defer tables.Close()
		lookup := must(NewLookup(tables, new(LookupOptions).WeightGradient(true)))
		defer lookup.Close()
		out, gradient := make([]float32, 12), make([]float32, 3)
		view, ids, weights := Matrix(out, 2, 6), Vector([]int64{1, 2, 3}), Vector([]float32{1, 1, 2})
		err = errors.Join(err, lookup.Begin(Batch{Size: 2, Values: ids, Offsets: Vector([]int64{0, 1, 2, 2, 3}), Weights: weights}))
		ok(t, must(lookup.OutputShape(0)) == LookupOutputShape{Rows: 2, Columns: 6})
		err = errors.Join(err, lookup.Forward(0, view))
		ok(t, !must(lookup.AllDone()))
		for i := range out {
			out[i] = 1
		}
		err = errors.Join(err, lookup.SetGradient(0, view), lookup.Backward(UpdateAccumulate), lookup.WeightGradient(Vector(gradient)),
			lookup.Begin(Batch{Size: 2, Values: ids, Lengths: Vector([]int64{1, 1, 1}), BatchSizes: Vector([]int64{1, 2}), Inverse: Vector([]int64{0, 0, 0, 1})}),
			lookup.Forward(0, view), lookup.SetGradient(0, view), lookup.Backward(UpdateApply))
		ok(t, must(tables.Step()) == 1)
		err = errors.Join(err, lookup.Begin(Batch{Size: 2, Values: ids, Lengths: Vector([]int64{1, 1, 1, 0})}), lookup.Forward(0, view), lookup.Backward(UpdateSkip),
			lookup.Begin(Batch{}), lookup.Forward(0, Matrix(out, 0, 6)))
		ok(t, must(lookup.AllDone()))
		row := make([]float32, 4)
		err = errors.Join(err, tables.SetStep(7), tables.SetLearningRate(AllTables, 0.1), tables.SetLearningRate(1, 0.2), tables.SetFrozen(0, true), tables.WaitDevice(), lookup.SetStream(0),
			tables.WriteRange(0, TablePartWeights, 9, 1, Matrix([]float32{1, 2, 3, 4}, 1, 4)), tables.ReadRange(0, TablePartWeights, 9, 1, Matrix(row, 1, 4)))
		ok(t, row[3] == 4 && must(tables.Step()) == 7 && must(tables.Stat(StatSteps, AllTables)) >= 1)
		ok(t, must(tables.LearningRate(1)) == 0.2 && must(tables.Frozen(0)) && !must(tables.Frozen(1)))
		ok(t, must(tables.Stat(StatTableIds, 0)) >= 0 && must(tables.Stat(StatSecondsLookup, AllTables)) >= 0)
		ok(t, strings.Contains(must(comm.OperationsJSON()), "["))
		mark, changed := must(tables.Mark()), make([]int64, 2)
		err = errors.Join(err, tables.WriteRange(0, TablePartWeights, 9, 1, Matrix(row, 1, 4)))
		count := must(tables.ChangedRows(mark, 0, 0, Vector(changed)))
		ok(t, count == must(tables.ChangedRows(mark, 0, 9, Tensor{})) && changed[0] == 9*int64(count))
		err = errors.Join(err, tables.ReleaseMark(mark))
		own, boxes := must(tables.Model()), must(tables.Plan())
		ok(t, must(own.ToJSON()) == must(model.ToJSON()) && must(boxes.ToJSON()) == must(plan.ToJSON()))
		return errors.Join(err, own.Close(), boxes.Close())
	})
}

func TestMeshes(t *testing.T) {
	onRanks(t, func(comm *Comm) error {
		mesh, model := must(NewMesh(comm, 1, new(MeshOptions).Placement(PlacementSync))), reachModel()
		plan := must(NewCollectivePlan(comm, mesh, model, nil))
		tables := must(NewCollection(comm, mesh, model, plan, new(CollectionOptions).SyncEvery(16)))
		shared := must(NewCollection(comm, mesh, model, plan, new(CollectionOptions).ReplicaSync(ReplicaSyncSharded)))
		sharding, replica := must(mesh.Comm(MeshGroupSharding)), must(mesh.Comm(MeshGroupReplica))
		ok(t, must(mesh.Place()).ReplicaSize == 2 && must(sharding.Size()) == 1 && must(replica.Size()) == 2)
		err := errors.Join(tables.SyncReplicas(), tables.SyncBegin(), tables.SyncWait(), tables.CheckReplicas(), shared.CheckReplicas(), tables.ReplicaFill(1))
		later := must(NewCollection(comm, mesh, model, plan, nil))
		err = errors.Join(err, later.ContinueFrom(tables))
		for _, handle := range []interface{ Close() error }{later, tables, shared, plan, model, sharding, replica, mesh} {
			handle.Close()
		}
		return err
	})
}

func TestLayersInGroups(t *testing.T) {
	onRanks(t, func(comm *Comm) error {
		mlp := must(NewMlp(2, new(MlpOptions).Optimizer(OptimizerAdam).LearningRate(0.1).Seed(3)))
		interaction, ddp := must(NewInteraction(1, 2, nil)), must(NewDdp(comm, nil))
		defer interaction.Close()
		defer ddp.Close()
		err := mlp.AddLinear(2, ActivationNone)
		early, _, _ := mlp.Parameter(0)
		err = errors.Join(err, mlp.AddLinear(2, ActivationNone))
		_, stale := early.Values()
		_, none := View{}.Values()
		ok(t, errors.Is(none, ErrInvalidHandle), none)
		weight, _, failure := mlp.Parameter(0)
		before := must(weight.Values())
		ok(t, errors.Is(stale, ErrInvalidState) && must(mlp.Info()).Parameters == 4 && len(before) == 4, stale)
		must(ddp.AddMlp("stack", mlp))
		in, dense, gradient, joined := []float32{1, float32(must(comm.Rank()) + 1)}, make([]float32, 2), make([]float32, 2), make([]float32, 3)
		err = errors.Join(err, failure, ddp.Commit(), ddp.Begin(true), mlp.Forward(Matrix(in, 1, 2), Matrix(dense, 1, 2)),
			interaction.Forward(Matrix(dense, 1, 2), Matrix([]float32{3, 4}, 1, 2), Matrix(joined, 1, 3)),
			interaction.Backward(Matrix([]float32{1, 1, 1}, 1, 3), Matrix(gradient, 1, 2), Matrix(make([]float32, 2), 1, 2)))
		ok(t, must(interaction.Outputs()) == 3 && gradient[0] == 4 && gradient[1] == 5, gradient)
		err = errors.Join(err, mlp.Backward(Matrix(gradient, 1, 2), Tensor{}), ddp.End(), ddp.Wait(), mlp.SetLearningRate(0.01), mlp.Step())
		ok(t, before[0] != must(weight.Values())[0])
		err = errors.Join(err, mlp.ZeroGradients(), ddp.CheckEqual())
		ok(t, must(mlp.Info()) == MlpInfo{Inputs: 2, Outputs: 2, Layers: 2, Parameters: 4, Elements: 12, Step: 1, LearningRate: 0.01, Optimizer: OptimizerAdam, States: 2, LossScale: 1})
		mean, square := must(mlp.State(0, 0)), must(mlp.State(0, 1))
		ok(t, len(must(mean.Values())) == 4 && must(mean.Values())[0] != 0 && must(square.Values())[0] > 0)
		_, failure = mlp.State(0, 2)
		ok(t, errors.Is(failure, ErrNotFound) && StatusOf(weight.Set(nil)) == StatusInvalidArgument, failure)
		mlp.Close()
		_, stale = weight.Values()
		ok(t, errors.Is(stale, ErrInvalidHandle), stale)
		return err
	})
}

func TestOwnParameters(t *testing.T) {
	onRanks(t, func(comm *Comm) error {
		weight, bias, flat := []float32{1, 2}, []float32{3}, make([]float32, 3)
		ddp := must(NewDdp(comm, new(DdpOptions).FirstBucketBytes(1).Unused(UnusedZero)))
		defer ddp.Close()
		ok(t, must(ddp.AddParameter("weight", Vector(weight), Tensor{})) == 0 && must(ddp.AddParameter("bias", Vector(bias), Tensor{})) == 1)
		err := errors.Join(ddp.SetFlatGradient(Vector(flat)), ddp.SetOptimizer(new(OptimizerOptions).Optimizer(OptimizerAdagrad).LearningRate(1)),
			ddp.Commit(), ddp.Begin(true))
		flat[0], flat[1] = 3, 3
		err = errors.Join(err, ddp.MarkReady(0, 1), ddp.MarkUnused(1, 1), ddp.End(), ddp.Wait())
		ok(t, must(ddp.BucketOf(1)) == 0 && len(must(must(ddp.Gradient(0)).Values())) == 2 && must(ddp.ClipGradients(ClipL2, 1)) > 4)
		err = errors.Join(err, ddp.Step())
		ok(t, weight[0] < 0.1 && must(must(ddp.State(0, 0)).Values())[0] > 0, weight)
		err = errors.Join(err, ddp.ZeroGradients(), ddp.SetLearningRate(0.5), ddp.AllReduce(), ddp.Broadcast(1), ddp.CheckEqual(), ddp.Join())
		ok(t, strings.Contains(must(ddp.StatisticsJSON()), "buckets"))
		return err
	})
}

func TestShardedParameters(t *testing.T) {
	root := filepath.Join(t.TempDir(), "sharded")
	onRanks(t, func(comm *Comm) error {
		fsdp := must(NewFsdp(comm, nil, new(FsdpOptions).Prefetch(1).ReduceDtype(DtypeFloat32)))
		defer fsdp.Close()
		unit := must(fsdp.AddUnit("tower"))
		weight, bias := must(fsdp.AddParameter(unit, "weight", 40, 2)), must(fsdp.AddParameter(unit, "bias", 3, 0))
		ok(t, unit == 0 && weight == 0 && bias == 1)
		given, read := []float32{1, 2, 3}, make([]float32, 3)
		err := errors.Join(fsdp.SetOptimizer(new(OptimizerOptions).Optimizer(OptimizerAdagrad).LearningRate(1)), fsdp.Commit(),
			fsdp.SetFull(bias, int(FsdpArrayValues), Vector(given), 0), fsdp.Begin(true), fsdp.Unshard(unit), fsdp.WaitUnshard(unit))
		ok(t, must(must(fsdp.Parameter(bias)).Values())[2] == 3)
		err = errors.Join(err, fsdp.Reshard(unit), fsdp.Unshard(unit))
		err = errors.Join(err, must(fsdp.Gradient(bias)).Set([]float32{0, 0, 4}), fsdp.MarkReady(unit), fsdp.End(), fsdp.Wait())
		ok(t, must(fsdp.ClipGradients(ClipInfinity, 8)) == 4)
		err = errors.Join(err, fsdp.Step(), fsdp.Full(bias, int(FsdpArrayValues), Vector(read)))
		ok(t, read[0] == 1 && read[2] < 2.1, read)
		offset, elements, failure := fsdp.Shard(weight, int(FsdpArrayState))
		ok(t, failure == nil && len(must(elements.Values())) > 0 && offset == int64(64*must(comm.Rank())), offset)
		err = errors.Join(err, fsdp.ZeroGradients(), fsdp.SetLearningRate(0.5), fsdp.CheckEqual())
		ok(t, strings.Contains(must(fsdp.StatisticsJSON()), "gathers"))
		checkpoint := must(NewCheckpoint(comm, root, nil))
		defer checkpoint.Close()
		return errors.Join(err, checkpoint.AddFsdp("tower", fsdp), checkpoint.Commit(context.Background(), 1))
	})
}

func TestShardedStack(t *testing.T) {
	onRanks(t, func(comm *Comm) error {
		fsdp, mlp := must(NewFsdp(comm, nil, nil)), must(NewMlp(2, nil))
		defer fsdp.Close()
		defer mlp.Close()
		err := mlp.AddLinear(1, ActivationNone)
		value, _, failure := mlp.Parameter(0)
		err = errors.Join(err, failure, value.Set([]float32{1, 2}))
		ok(t, must(fsdp.AddMlp("net", mlp, 1)) == 0)
		out, weight := make([]float32, 1), make([]float32, 2)
		err = errors.Join(err, fsdp.SetOptimizer(new(OptimizerOptions).Optimizer(OptimizerSgd).LearningRate(1)), fsdp.Commit(), fsdp.Begin(true),
			mlp.Forward(Matrix([]float32{3, 4}, 1, 2), Matrix(out, 1, 1)), mlp.Backward(Matrix([]float32{1}, 1, 1), Tensor{}),
			fsdp.End(), fsdp.Wait(), fsdp.Step(), fsdp.Full(0, int(FsdpArrayValues), Vector(weight)))
		ok(t, weight[0] == -2 && weight[1] == -2, weight)
		_, _, failure = mlp.Parameter(0)
		ok(t, errors.Is(failure, ErrInvalidState), failure)
		return err
	})
}

func TestCheckpoints(t *testing.T) {
	root := filepath.Join(t.TempDir(), "run")
	onRanks(t, func(comm *Comm) error {
		weight, model, ctx := []float32{1, 2}, reachModel(), context.Background()
		plan := must(NewCollectivePlan(comm, nil, model, new(PlanOptions).Sharding(ShardingRowWise)))
		tables, mlp, ddp := must(NewCollection(comm, nil, model, plan, nil)), must(NewMlp(2, nil)), must(NewDdp(comm, nil))
		checkpoint := must(NewCheckpoint(comm, root, new(CheckpointOptions).KeepLast(5).MostDeltas(3).DeltaStates(false)))
		must(ddp.AddParameter("weight", Vector(weight), Tensor{}))
		position := []int64{int64(must(comm.Rank()))}
		err := errors.Join(mlp.AddLinear(1, ActivationNone), ddp.Commit(), checkpoint.AddCollection("tables", tables), checkpoint.AddMlp("layers", mlp),
			checkpoint.AddDdp("own", ddp), checkpoint.SetTensor("position", Vector(position)), checkpoint.Commit(ctx, 5))
		weight[0] = 9
		err = errors.Join(err, checkpoint.Open(5), checkpoint.Load(ctx), checkpoint.GetTensor("position", 1, Vector(position)), checkpoint.Verify(ctx))
		ok(t, must(checkpoint.Info()).Step == 5 && must(checkpoint.Info()).Tensors == 2 && weight[0] == 1 && position[0] == 1, weight, position)
		err = errors.Join(err, checkpoint.CommitBegin(ctx, 6))
		weight[0] = 9 // is 1 in what was begun
		ok(t, must(checkpoint.CommitWait(-1)))
		err = errors.Join(err, checkpoint.Open(6), checkpoint.Load(ctx))
		ok(t, weight[0] == 1, weight)
		ok(t, !must(checkpoint.CommitDelta(ctx, 7)) && must(checkpoint.CommitDelta(ctx, 8)))
		ok(t, must(checkpoint.CommitDeltaBegin(ctx, 9)) && must(checkpoint.CommitWait(-1)))
		err = errors.Join(err, checkpoint.Open(9))
		ok(t, strings.Contains(must(checkpoint.ContentsJSON()), `"states": false`))
		_, failure := checkpoint.CommitWait(0)
		ok(t, errors.Is(failure, ErrInvalidState), failure)
		err = errors.Join(err, checkpoint.Open(5))
		weight[0] = 9
		report := must(checkpoint.LoadPartial(ctx, `{"version": 1, "load": "listed", "parameters": [{"name": "own"}]}`))
		_, refused := checkpoint.LoadPartial(ctx, "{}")
		ok(t, weight[0] == 1 && strings.Contains(report, "left_out") && errors.Is(refused, ErrInvalidArgument), report, refused)
		info, failure := checkpoint.TensorInfo("position", 1)
		ok(t, info.Dtype == DtypeInt64 && len(info.Shape) == 1 && info.Shape[0] == 1 && info.Bytes == 8, info, failure)
		saved, boxes, layers := must(checkpoint.Model("tables")), must(checkpoint.Plan("tables")), must(checkpoint.Mlp("layers", nil))
		ok(t, must(saved.Info()).Tables == 2 && must(boxes.BoxCount(0)) >= 1 && must(layers.Info()).Parameters == 2)
		ok(t, strings.Contains(must(checkpoint.ContentsJSON()), "tables") && strings.Contains(must(CheckpointListJSON(root)), "5"))
		for _, handle := range []interface{ Close() error }{saved, boxes, layers, checkpoint, ddp, mlp, tables, plan, model} {
			handle.Close()
		}
		return err
	})
}

func TestMetrics(t *testing.T) {
	onRanks(t, func(comm *Comm) error {
		metrics := must(NewMetrics(comm, nil))
		defer metrics.Close()
		err := errors.Join(metrics.Update(Vector([]float32{0.9, 0.1}), Vector([]float32{1, 0})), metrics.Compute())
		ok(t, must(metrics.Get(MetricAuc)) == 1 && strings.Contains(must(CountersText()), "shardrec"))
		return errors.Join(err, metrics.Reset())
	})
}

// Two ranks that meet as processes do, each on a goroutine of its own.
func TestRanksMeet(t *testing.T) {
	t.Setenv("WORLD_SIZE", "")
	_, err := NewCommFromEnv(new(CommOptions).Engine(EngineGloo))
	ok(t, errors.Is(err, ErrInvalidArgument), err)
	rendezvous := must(NewRendezvous(nil))
	defer rendezvous.Close()
	token := must(rendezvous.Token())
	var ranks sync.WaitGroup
	for rank := range 2 {
		ranks.Add(1)
		go func() {
			defer ranks.Done()
			comm, err := NewComm(EngineGloo, rank, 2, token, new(CommOptions).SetupSeconds(60))
			if err != nil {
				t.Error(err)
				return
			}
			defer comm.Close()
			ok(t, must(comm.Rank()) == rank)
			if err := errors.Join(comm.Set(CommPropertyStepSeconds, 60), comm.Barrier(), comm.Shutdown()); err != nil {
				t.Error(err)
			}
		}()
	}
	done := make(chan struct{})
	go func() { ranks.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(2 * time.Minute):
		t.Error("they do not meet")
	}
}
