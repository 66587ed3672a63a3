// Must not compile: each line takes what may be null for what may not, or gives null where that is refused.
import org.shardrec.*

fun mistakes(failure: ShardRecException, comm: Comm, model: Model) {
  val table: String = failure.table()
  val half: Comm = comm.split(0, 0)
  model.addTable(null, 3, 4, null)
  val status: Status = Status.of(7)
}
