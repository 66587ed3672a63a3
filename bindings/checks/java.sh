# What bindings/run checks of Java. Read by it, with its functions and variables.
# shellcheck shell=bash disable=SC2154

# Blocks of memory are counted too, in the file that SHARDREC_LIVE_BLOCKS names.
java_run() {  # FOLDER CLASS ARGUMENTS...
  counted java timeout 120 env LD_PRELOAD="$work/libcalls.so:$work/libliveblocks.so" java -Xcheck:jni -Xmx128m -XX:+UseSerialGC -Dshardrec.library.path="$1" -cp "$1/classes:$1/tests" "org.shardrec.$2" "${@:3}"
}

java_doc() {
  rm -rf "$work/javadoc"
  javadoc -quiet -Xdoclint:all -Xmaxwarns 500 -Werror -d "$work/javadoc" -p "$work/pinned/jspecify" \
    "$work"/pinned/sources/org/shardrec/*.java $(find bindings/java/src/main -name '*.java')
}
java_compile() {  # FOLDER: sources into FOLDER/classes, as a module; tests into FOLDER/tests, inside its package
  rm -rf "$1"/{jspecify,classes,tests}
  local compile=(javac -Xlint:all -Werror --release 17)
  "${compile[@]}" -d "$1/jspecify" $(find bindings/java/src/jspecify -name '*.java') &&
    "${compile[@]}" -d "$1/classes" -p "$1/jspecify" "$1"/sources/org/shardrec/*.java \
      $(find bindings/java/src/main -name '*.java') &&
    "${compile[@]}" -d "$1/tests" -cp "$1/classes:$1/jspecify" $(find bindings/java/src/test -name '*.java')
}
java_smoke() {  # SWIG_NAME SWIG
  local out=$work/$1 test
  rm -f "$work/called.java"
  bindings/java/build "$build" "$out" "$2" && java_compile "$out" || return
  local status=0
  local -x SHARDREC_LIVE_BLOCKS  # names a file for one test, whether it ends well or not
  for test in SmokeTest CapiTest TensorTest LifeTest CancelTest ReachTest StepTest DeviceTest; do
    SHARDREC_LIVE_BLOCKS=
    [[ $test != LifeTest ]] || SHARDREC_LIVE_BLOCKS=$out/blocks
    with_device java_run "$out" $test || { status=1; break; }
  done >"$out/java.txt" 2>&1
  cat "$out/java.txt"
  # -Xcheck:jni only warns; a call with an exception pending is a fault of the typemaps.
  ((status == 0)) && ! grep -q 'WARNING in native method' "$out/java.txt"
}

java_loader() {
  local run=(java_run "$work/pinned" LoaderTest)
  "${run[@]}" || return
  # Once more with a folder that no code may be loaded from.
  unshare -rm true 2>/dev/null || { echo "no folder without exec: unshare is not allowed here"; return; }
  export -f java_run counted; export work; mkdir -p "$work/noexec"
  unshare -rm bash -c 'mount -t tmpfs -o noexec none "$work/noexec" && java_run "$work/pinned" LoaderTest "$work/noexec"'
}
java_page() {  # its samples compile without a warning and run
  local out=$work/java.page name
  rm -rf "$out"; mkdir -p "$out/run"
  bindings/tools/java_samples.py bindings/java/README.md "$out" >"$out/names" &&
    javac -Xlint:all,-try -Werror --release 17 -d "$out/classes" -cp "$work/pinned/classes" "$out"/*.java || return
  while read -r name; do
    echo "$name:"
    (cd "$out/run" && java -Xcheck:jni -Dshardrec.library.path="$work/pinned" -cp "$work/pinned/classes:$out/classes" "$name") || return
  done <"$out/names"
  (($(wc -l <"$out/names") >= 8))
}
java_exit() { java_run "$work/pinned" ExitTest; }

# The artefacts of Maven, from a repository of files, and callers that have nothing else.
java_online() { MAVEN_OPTS=-Dmaven.repo.local=$work/m2 mvn -B -q org.apache.maven.plugins:maven-dependency-plugin:3.8.1:help >/dev/null 2>&1; }
maven() { MAVEN_OPTS=-Dmaven.repo.local=$work/m2 mvn -B -q "$@"; }
java_package() {
  local once=$work/repository twice=$work/repository.again file
  rm -rf "$once" "$twice" "$work/m2/org/shardrec"
  MAVEN_OPTS=-Dmaven.repo.local=$work/m2 bindings/java/package "$build" "$once" &&
    MAVEN_OPTS=-Dmaven.repo.local=$work/m2 bindings/java/package "$build" "$twice" || return
  while read -r file; do cmp "$once/$file" "$twice/$file" || return; done \
    < <(cd "$once" && find . -name '*.jar' -o -name '*.pom')
  for file in "$once"/org/shardrec/shardrec/*/*.jar; do
    unzip -l "$file" META-INF/LICENSE >/dev/null || { echo "$file: without a licence"; return 1; }
  done
  (($(find "$once" -name '*.jar' | wc -l) == 4))
}
# On threads and over Gloo, as a module and by the class path; with libraries of the folder of their own alone, though the
# system's are hidden where that is allowed.
java_consumer() {
  local out=$work/consumer hide=() run library
  maven -f bindings/java/consumer/pom.xml -Dshardrec.repository="$work/repository" -Dconsumer.target="$out" \
    -Dshardrec.platform="linux-$(uname -m)" clean package || return
  local classes=$out/lib/shardrec-*[0-9].jar natives=$out/lib/shardrec-*-linux-*.jar
  if unshare -rm true 2>/dev/null; then
    hide=(unshare -rm bash -c 'for file in $(ldconfig -p | sed -nE "s/.*lib(tbb|sodium|gloo)\.so.* => //p"); do
      mount --bind /dev/null "$file"; done; exec "$@"' hidden)
  else
    echo "libraries of the system are not hidden: unshare is not allowed here"
  fi
  for run in "-cp $(echo $out/consumer.jar $classes $natives | tr ' ' :) consumer.Consumer" \
    "-p $(echo $out/consumer.jar $classes | tr ' ' :) -cp $(echo $natives) -m consumer/consumer.Consumer"; do
    env -u LD_LIBRARY_PATH "${hide[@]}" java -Xcheck:jni $run >"$out/loaded" || return
    cat "$out/loaded"
    for library in shardrec shardrec_jni shardrec_gloo shardrec_openblas tbb sodium gloo; do
      grep -qE "/shardrec-[0-9]+-[0-9]+/lib$library\.so" "$out/loaded" || { echo "lib$library is not loaded"; return 1; }
    done
    ! grep -vE '^/.*/shardrec-[0-9]+-[0-9]+/' "$out/loaded" || return
  done
}
java_neighbours() {
  local out=$work/neighbours here=bindings/java/consumer classes
  classes=$(echo "$work"/consumer/lib/*.jar | tr ' ' :)
  rm -rf "$out"; mkdir -p "$out"
  maven -f $here/compilers.xml dependency:copy-dependencies -DoutputDirectory="$out/compilers" || return
  local compiler=(java -cp "$out/compilers/*") stdlib kotlin
  stdlib=$(echo "$out"/compilers/kotlin-stdlib-[0-9]*.jar)
  kotlin=("${compiler[@]}" org.jetbrains.kotlin.cli.jvm.K2JVMCompiler -no-stdlib -no-reflect -jvm-target 17 -cp "$stdlib:$classes")
  "${kotlin[@]}" -Werror -d "$out/kotlin" $here/Caller.kt &&
    refused 4 'error: (initializer type mismatch|null cannot be)' "${kotlin[@]}" -d "$out/refused" $here/NullCaller.kt &&
    "${compiler[@]}" scala.tools.nsc.Main -Xlint -Xfatal-warnings -deprecation -release 17 -cp "$classes:$(
      echo "$out"/compilers/scala-library-*.jar)" -d "$out/scala.jar" $here/Caller.scala &&
    env -u LD_LIBRARY_PATH java -cp "$out/kotlin:$out/compilers/*:$classes" CallerKt &&
    env -u LD_LIBRARY_PATH java -cp "$out/scala.jar:$out/compilers/*:$classes" Caller
}

# As a user: the artefacts alone, no checkout, no LD_LIBRARY_PATH; and what the same program leaves in C++.
java_example() (
  user=$(mktemp -d) tool=$build/bin/shardrec
  trap 'rm -rf "$user"' EXIT
  unset LD_LIBRARY_PATH
  if grep -rnE 'Capi|java\.lang\.reflect|setAccessible' examples/java/src; then return 1; fi
  (($(wc -l <examples/java/src/main/java/org/example/Dlrm.java) <= 200)) && cp -r examples/java "$user/dlrm" && cd "$user/dlrm" &&
    maven -Dshardrec.repository="$work/repository" -Dshardrec.platform="linux-$(uname -m)" package || return
  java -Xcheck:jni -cp "target/dlrm.jar:target/lib/*" org.example.First | grep '^last losses: ' || return
  local small=(java -Xmx64m -Xms16m -XX:+UseSerialGC -XX:ReservedCodeCacheSize=32m -XX:MaxMetaspaceSize=64m
    -XX:CompressedClassSpaceSize=32m -XX:-CreateCoredumpOnCrash "-XX:ErrorFile=$user/error.log" -cp "target/dlrm.jar:target/lib/*")
  ends_under_limits 300 1400 50 "${small[@]}" org.example.First || return
  dlrm=(java -Xcheck:jni -cp "target/dlrm.jar:target/lib/*" org.example.Dlrm)
  for what in train resume serve; do "${dlrm[@]}" $what "$user/run" || return; done | tee "$user/said" && cat >"$user/bounds" <<END || return
step 50, 2 ranks: 0.71 0.75
step 100, 3 ranks: 0.80 0.83
serving step 100: 0.80 0.83
END
  paste "$user/said" "$user/bounds" | awk -F'\t' '{
    split($1, said, " test AUC "); n = split($2, want, " "); name = $2; sub(/ [^ ]+ [^ ]+$/, "", name)
    if (said[1] != name || said[2] < want[n - 1] || said[2] > want[n]) { print "out of bounds: " $0; bad = 1 }
  } END { exit bad || NR != 3 }' || return
  "${dlrm[@]}" train "$user/threads" && "$tool" launch --nproc 2 -- "${dlrm[@]}" train "$user/processes" &&
    "$build/bin/dlrm_cpp" train "$user/cpp" &&
    "$tool" inspect "$user/threads" --diff "$user/processes" | grep '^the same: 34' &&
    "$tool" inspect "$user/threads" --diff "$user/cpp" | grep '^the same: 34'
)

java_misuse() {
  refused 2 'error: incompatible types' javac -d "$work/misuse" -cp "$work/pinned/classes:$work/pinned/jspecify" bindings/misuse/WrongKind.java
}

check_java() {
  need "Java" java javac || return
  attempt "Java: smoke test and raw layer, pinned swig" java_smoke pinned "$pinned"
  attempt "Java: smoke test and raw layer, Debian's swig" java_smoke system /usr/bin/swig
  attempt "Java: the library is loaded from folders and jars, twice in a process, and failures say what was tried" java_loader
  attempt "Java: System.exit while ranks wait" java_exit
  attempt "Java: the samples of its page compile and run" java_page
  attempt "Java: tests call every function" calls_all java
  attempt "Java: misuse does not compile" java_misuse
  attempt "Java: all that is public is documented" java_doc
  if need "Java: artefacts of Maven" mvn unzip; then
    if java_online; then
      attempt "Java: artefacts of Maven, twice the same" java_package &&
        attempt "Java: the example trains, resumes and serves from the artefacts" java_example &&
        attempt "Java: a consumer has the artefacts alone" java_consumer &&
        attempt "Java: Kotlin and Scala compile without casts, and see what may be null" java_neighbours
    else
      echo "SKIP: bindings Java: artefacts of Maven: its plug-ins cannot be reached"; skipped=$((skipped + 1))
    fi
  fi
}
