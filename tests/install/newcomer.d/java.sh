# Java through Maven: our artefacts from a repository of files, Maven's own plug-ins from where its settings say.
# Read by newcomer, with its functions and variables.
# shellcheck shell=bash disable=SC2154

artefacts_java() {
  .ci/install default-jdk-headless:javac maven:mvn && rm -rf "$work/repository" && bindings/java/package "$build" "$work/repository"
}

# Maven keeps what it downloads in the cache, but for ours: that is of an earlier build.
build_java() {
  install openjdk-17-jdk-headless maven && rm -rf "$cache/m2/org/shardrec" "$root/root/repository" "$root/root/examples/java" &&
    cp -r "$work/repository" "$root/root/repository" && copy_in examples/java &&
    inside 'cd examples/java; mvn -B -q -Dmaven.repo.local=/cache/m2 -Dshardrec.repository=/root/repository package'
}

# The libraries that a run loads are those that lie in the jar, extracted into a folder of the process: none is the system's.
libraries_of_the_jar() {
  inside 'rm -f loaded.*; LD_DEBUG=files LD_DEBUG_OUTPUT=/root/loaded timeout -v 300 '"$java"' serve threads
    sed -nE "s/.*calling init: (.*)/\1/p" loaded.* | sort -u >libraries
    for name in shardrec shardrec_jni shardrec_openblas tbb sodium; do
      grep -E "/shardrec-[0-9]+-[0-9]+/lib$name[.]so" libraries || { echo "error: lib$name is not loaded from the jar"; exit 1; }
    done
    if grep -E "lib(shardrec|tbb|sodium|gloo)" libraries | grep -vE "/shardrec-[0-9]+-[0-9]+/"; then
      echo "error: loaded, and not from the jar"; exit 1
    fi'
}
java='java -cp "examples/java/target/dlrm.jar:examples/java/target/lib/*" org.example.Dlrm'

# The command that starts processes is the one beside the natives.
alone_java() {
  local launcher=natives/bin/shardrec
  build_java && without_libraries tbb sodium gloo shardrec && dlrm "$java" && libraries_of_the_jar
}
language_java() { build_java && dlrm "$java" && libraries_of_the_jar; }
