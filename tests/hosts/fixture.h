// Hosts, and a training job whose numbers on them are compared with those of threads here.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "job.h"

namespace shardrec::hosts {

using Arguments = std::vector<std::string>;

// Whether the plug-in of an engine is there.
bool is_built(const std::string& engine);

class Hosts : public testing::Test {
 protected:
  static void SetUpTestSuite();
  static void TearDownTestSuite();
  void SetUp() override;

  // With no cable between them.
  void make_hosts(int count);
  void make_hosts_on_a_bridge(int count);

  // From here on jobs are a few small steps.
  void make_jobs_short() { short_ = true; }
  // `shardrec train ...`; checkpoint: a folder, or empty.
  Arguments train(const std::string& engine, int ranks, const std::string& sharding,
                  const std::string& checkpoint) const;
  // The job on the hosts against threads here: the losses and the files of the checkpoint. Returns
  // what rank 0 printed.
  Finished expect_bits_of_threads(const std::string& engine, int ranks,
                                  const std::string& sharding);

  // Of a job whose network has just been cut: every rank ends soon, with PEER_FAILED.
  static std::vector<Finished> expect_end_in_time(Job& job);

  const std::vector<const Host*>& hosts() const { return all_; }
  const Bridge& bridge() const { return *bridge_; }

 private:
  std::vector<std::unique_ptr<Host>> hosts_;
  std::vector<const Host*> all_;
  std::unique_ptr<Bridge> bridge_;
  bool short_ = SHARDREC_SANITIZED != 0;
};

}  // namespace shardrec::hosts
