package io.stasis.engine;

import java.nio.file.Path;
import java.util.List;

/**
 * What to checkpoint and where its files go.
 *
 * @param host this host's name, part of process keys
 * @param roots root processes of the tree (usually one)
 * @param cookie value of the environment variable STASIS_COOKIE that marks processes re-parented away from the tree;
 *     null when the tree was not launched by Stasis
 * @param directory this host's directory inside the staging directory of the generation; null for a survey
 * @param prefix name of {@code directory} relative to the generation directory, such as "host-a"
 */
public record CheckpointRequest(String host, List<Integer> roots, String cookie, Path directory, String prefix) {}
