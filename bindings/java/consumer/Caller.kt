// Compiles without a cast and without "!!": types that may be null are Kotlin's nullable ones, and others are not.
import org.shardrec.*

fun tableOf(failure: ShardRecException): String = failure.table() ?: "none"

fun levelOf(message: ShardRec.LogMessage): LogLevel? = message.level()

fun names(status: Status): Int = status.value

fun main() {
  ShardRec.run(2) { comm: Comm ->
    Model().use { model ->
      val table: Int = model.addTable("items", 100, 8, TableOptions().init(Init.ZEROS).dtype(Dtype.FLOAT32))
      model.addFeature(table, "item", Pooling.SUM)
      val plan: Plan = Plan.collective(comm, null, model, null)
      val tables = EmbeddingCollection(comm, null, model, plan, CollectionOptions().deduplicate(true))
      val lookup = Lookup(tables, null)
      val out: Tensor = Tensor.matrix(Tensor.floats(8), 1, 8)
      lookup.begin(Batch(1, Tensor.vector(Tensor.longs(1, 2)), Tensor.vector(Tensor.ints(2))))
      lookup.forward(0, out)
      lookup.setGradient(0, out.resize(1))
      lookup.backward(Update.APPLY)
      val half: Comm? = comm.split(-1, 0)
      half?.close()
      val json: String = model.toJson()
      println(json.length)
      comm.shutdown()
      listOf(lookup, tables, plan).forEach { it.close() }
    }
  }
  val message: ShardRec.LogMessage? = ShardRec.nextLogMessage(0)
  println(message?.text() ?: "no message")
}
