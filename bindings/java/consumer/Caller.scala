// Compiles without a cast, and with all names of Predef as they are: none of the package hides them.
import org.shardrec._

object Caller {
  val some: Option[Map[String, Set[Int]]] = Some(Map("a" -> Set(1)))
  val list: Seq[Either[String, List[Long]]] = Seq(Left("a"), Right(List(1L)))

  def tableOf(failure: ShardRecException): Option[String] = Option(failure.table())

  def main(arguments: Array[String]): Unit = {
    ShardRec.run(2, (comm: Comm) => {
      val model = new Model()
      val table: Int = model.addTable("items", 100, 8, new TableOptions().init(Init.ZEROS).initMax(1))
      model.addFeature(table, "item", Pooling.SUM)
      val plan: Plan = Plan.collective(comm, null, model, new PlanOptions().sharding(Sharding.ROW_WISE))
      val tables = new EmbeddingCollection(comm, null, model, plan, null)
      val lookup = new Lookup(tables, null)
      val out: Tensor = Tensor.matrix(Tensor.floats(8), 1, 8)
      lookup.begin(new Batch(1, Tensor.vector(Tensor.longs(1, 2)), Tensor.vector(Tensor.ints(2))))
      lookup.forward(0, out)
      lookup.setGradient(0, out)
      lookup.backward(Update.APPLY)
      comm.shutdown()
      Seq(lookup, tables, plan, model).foreach(_.close())
    })
    println(some.map(_.size).getOrElse(0) + list.length)
  }
}
