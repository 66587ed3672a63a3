// What comes behind an update, before the call returns that has made it: on a mesh, the sync of the replicas where it is due.
//
// Thread rule: as the collection's.
#pragma once

namespace shardrec::embedding {

class UpdateFollower {
 public:
  virtual ~UpdateFollower() = default;
  UpdateFollower(const UpdateFollower&) = delete;
  UpdateFollower& operator=(const UpdateFollower&) = delete;

  // An update has been made, and its step is over. What it throws is the error of the call.
  virtual void updated() = 0;

 protected:
  UpdateFollower() = default;
};

}  // namespace shardrec::embedding
