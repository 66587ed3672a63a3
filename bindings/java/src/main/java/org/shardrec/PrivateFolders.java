package org.shardrec;

import java.io.IOException;
import java.io.InputStream;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.FileTime;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/** Folders of this process alone, to load native libraries from: of a fresh name, for their owner only, gone when the
 * process ends. A folder that no code may be loaded from (noexec) is left for the next one. A process that was killed
 * leaves its folder; the next process, which finds it unlocked, removes it. */
final class PrivateFolders {
  /** A folder to make them in, in place of the usual ones. */
  static final String PROPERTY = "shardrec.extract.path";

  private static final String PREFIX = "shardrec-";
  private static final String LOCK = "lock";

  /** Fills a folder and loads from it. */
  interface Use {
    void of(Path folder) throws IOException;
  }

  private final List<String> tried;

  /** tried: gets a sentence for each folder that does not do. */
  PrivateFolders(List<String> tried) {
    this.tried = tried;
  }

  /** Uses a folder in the first place where that works; says so when it is not the first. */
  boolean any(String what, Use use) {
    List<String> refused = new ArrayList<>();
    for (Path place : places()) {
      Path folder = null;
      try {
        folder = Files.createTempDirectory(place, PREFIX + ProcessHandle.current().pid() + "-",
            PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")));
        lock(folder);
        removeAbandoned(place, folder);
        use.of(folder);
        removeAtExit(folder);
        if (!refused.isEmpty()) {
          System.getLogger("org.shardrec").log(System.Logger.Level.WARNING,
              "native libraries are loaded from " + folder + ", because: " + String.join("; ", refused));
        }
        return true;
      } catch (IOException | UnsatisfiedLinkError e) {
        if (folder != null) remove(folder);
        refused.add("in " + place + ": " + (e instanceof NoSuchFileException ? "no such folder" : e.getMessage()));
      }
    }
    for (String each : refused) tried.add(what + ", " + each);
    return false;
  }

  static void extract(ClassLoader loader, String resource, Path file) throws IOException {
    try (InputStream in = loader.getResourceAsStream(resource)) {
      if (in == null) throw new IOException("the jar has no " + resource);
      Files.copy(in, file);
    }
  }

  private static Set<Path> places() {
    String property = System.getProperty(PROPERTY);
    if (property != null) return Set.of(Path.of(property));
    Set<Path> places = new LinkedHashSet<>();
    for (String place : new @Nullable String[] {
          System.getProperty("java.io.tmpdir"), "/var/tmp", "/dev/shm", System.getProperty("user.home")}) {
      if (place != null && !place.isEmpty()) places.add(Path.of(place).toAbsolutePath());
    }
    return places;
  }

  /** Held until the process ends; closing the channel, or another one of the file, would give it up. */
  private static void lock(Path folder) throws IOException {
    FileChannel channel =
        FileChannel.open(folder.resolve(LOCK), StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE);
    if (channel.tryLock() == null) throw new IOException("the lock of a fresh folder is taken");
    LOCKS.add(channel);
  }

  private static final List<FileChannel> LOCKS = new ArrayList<>(1);

  /** Folders of this user that nobody locks. Those of this process are left alone, so that their locks are kept, and so
   * are fresh ones, which may be about to be locked. */
  private static void removeAbandoned(Path place, Path own) {
    String process = PREFIX + ProcessHandle.current().pid() + "-";
    FileTime fresh = FileTime.from(Instant.now().minus(Duration.ofMinutes(1)));
    try (DirectoryStream<Path> folders = Files.newDirectoryStream(place, PREFIX + "*-*")) {
      for (Path folder : folders) {
        if (folder.getFileName().toString().startsWith(process)) continue;
        if (!Files.getOwner(folder, LinkOption.NOFOLLOW_LINKS).equals(Files.getOwner(own))) continue;
        if (Files.getLastModifiedTime(folder, LinkOption.NOFOLLOW_LINKS).compareTo(fresh) > 0) continue;
        try (FileChannel channel = FileChannel.open(folder.resolve(LOCK), StandardOpenOption.WRITE);
            FileLock lock = channel.tryLock()) {
          if (lock != null) remove(folder);
        } catch (IOException other) {
          // No folder of this class.
        }
      }
    } catch (IOException unreadable) {
      // What cannot be listed, or is gone meanwhile, needs no tidying.
    }
  }

  /** Not earlier: the library opens its plug-ins from there when they are first used. */
  private static void removeAtExit(Path folder) {
    try {
      Runtime.getRuntime().addShutdownHook(new Thread(() -> remove(folder), "shardrec-remove"));
    } catch (IllegalStateException exitsAlready) {
      remove(folder);
    }
  }

  private static void remove(Path folder) {
    try (Stream<Path> files = Files.walk(folder)) {
      for (Path file : files.sorted(Comparator.reverseOrder()).toList()) Files.deleteIfExists(file);
    } catch (IOException left) {
      // The next process removes it.
    }
  }
}
