// Direct access of a device to the memory of another one. Without it a copy between the two goes by way of the host.
#pragma once

namespace shardrec::compute::cuda {

// Asks for access of `device`, which is the calling thread's current one, to the memory of `peer`: to that of its
// stream-ordered pool, and to that which cudaMalloc() gives. Once for each pair, by the first thread that calls; another
// one returns when that is done. Where there is no such access, or it is refused, copies are right without it: no
// error comes back, and none is left to cudaGetLastError().
void allow_peer_access(int device, int peer);

}  // namespace shardrec::compute::cuda
