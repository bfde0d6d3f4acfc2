# What a user gets: the library, the public headers, and how to find them.

# <stet/stet.h> and everything it includes.
set(STET_PUBLIC_HEADERS
    stet/stet.h
    stet/base/where.h stet/base/export.h stet/base/error.h stet/base/dtype.h stet/base/dim.h stet/base/shape.h
    stet/base/text.h stet/base/for_each.h
    stet/runtime/buffer.h stet/runtime/parallel.h
    stet/core/tensor.h stet/core/dlpack.h stet/core/in.h stet/core/dim_host.h stet/core/variable.h stet/core/vmap.h stet/core/tape.h
    stet/core/differentiate.h
    stet/core/function.h stet/core/audit.h stet/core/structure.h stet/core/handle.h stet/core/name_scope.h stet/core/scope.h stet/core/signature.h
    stet/core/host_call.h stet/core/ledger.h stet/core/export.h
    stet/ops/loops.h stet/ops/ops.h stet/ops/elementwise.def
    stet/data/idx.h stet/data/element.h stet/data/options.h stet/data/position.h stet/data/dataset.h
    stet/data/labeled.h stet/data/paths.h stet/data/bytes_view.h stet/data/csv.h stet/data/npy.h
    stet/data/text_lines.h stet/data/tfrecord.h stet/data/example.h stet/data/image.h stet/data/image_folder.h
    stet/data/wav.h stet/report/profile.h stet/report/summary_writer.h
    stet/keras/activation.h stet/keras/activation_layers.h stet/keras/adaptive_pooling.h stet/keras/attention.h
    stet/keras/augmentation.h stet/keras/backup_and_restore.h stet/keras/by_output.h stet/keras/callback.h stet/keras/categories.h stet/keras/cells.h
    stet/keras/checkpoint.h
    stet/keras/constraint.h stet/keras/conv_lstm.h stet/keras/convolution.h stet/keras/data.h stet/keras/dense.h
    stet/keras/dropout.h stet/keras/einsum_dense.h stet/keras/embedding.h stet/keras/flatten.h stet/keras/functional.h
    stet/keras/history.h stet/keras/identity.h stet/keras/initializer.h stet/keras/initializers.h stet/keras/input.h
    stet/keras/keras.h stet/keras/lambda.h stet/keras/layer.h stet/keras/layer_config.h stet/keras/lookup.h stet/keras/loss.h stet/keras/losses.h
    stet/keras/losses_hinge.h stet/keras/losses_probabilistic.h stet/keras/losses_regression.h
    stet/keras/losses_similarity.h stet/keras/members.h stet/keras/merging.h stet/keras/metric.h stet/keras/metrics.h
    stet/keras/metrics_accuracy.h stet/keras/metrics_confusion.h stet/keras/metrics_f_score.h stet/keras/metrics_iou.h
    stet/keras/metrics_probabilistic.h stet/keras/metrics_reduction.h stet/keras/metrics_regression.h
    stet/keras/model.h stet/keras/model_checkpoint.h stet/keras/noise.h stet/keras/normalization.h stet/keras/optimizer.h stet/keras/optimizers.h
    stet/keras/policy.h stet/keras/pooling.h stet/keras/preprocessing.h stet/keras/random_images.h
    stet/keras/recurrent.h stet/keras/recipe.h stet/keras/regularizer.h stet/keras/report.h stet/keras/reshaping.h stet/keras/saving.h
    stet/keras/saving_options.h stet/keras/schedule.h stet/keras/save_frequency.h stet/keras/saved_state.h
    stet/keras/sequential.h stet/keras/strings.h stet/keras/tensorboard.h stet/keras/text_vectorization.h stet/keras/window_sizes.h
    stet/keras/wrappers.h)

foreach(header IN LISTS STET_PUBLIC_HEADERS)
  cmake_path(GET header PARENT_PATH folder)
  install(FILES ${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/${folder})
endforeach()
install(FILES ${PROJECT_BINARY_DIR}/generated/stet/ops/declarations.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/stet/ops)
install(FILES ${PROJECT_BINARY_DIR}/generated/stet/base/version.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/stet/base)

install(TARGETS stet EXPORT stetTargets)
install(TARGETS stet_command)
# What the command prints of itself: where man and shells look for it.
set(command_pages "")
function(stet_command_page words file folder)
  set(page ${PROJECT_BINARY_DIR}/generated/command/${file})
  add_custom_command(OUTPUT ${page} COMMAND stet_command ${words} > ${page} DEPENDS stet_command VERBATIM
                     COMMENT "Printing ${file}")
  install(FILES ${page} DESTINATION ${folder})
  set(command_pages ${command_pages} ${page} PARENT_SCOPE)
endfunction()
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/generated/command)
stet_command_page(manual stet.1 ${CMAKE_INSTALL_MANDIR}/man1)
stet_command_page("completion;bash" stet ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
stet_command_page("completion;zsh" _stet ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
stet_command_page("completion;fish" stet.fish ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
add_custom_target(stet_command_pages ALL DEPENDS ${command_pages})
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/stet)
install(EXPORT stetTargets NAMESPACE stet:: DESTINATION ${package_folder})
configure_package_config_file(cmake/stetConfig.cmake.in generated/stetConfig.cmake INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(generated/stetConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/generated/stetConfig.cmake ${PROJECT_BINARY_DIR}/generated/stetConfigVersion.cmake
        DESTINATION ${package_folder})

# The prefix as seen from the pkg-config file, so that an installed tree may be moved.
set(pkgconfig_folder ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH STET_PC_PREFIX /prefix/${pkgconfig_folder} /prefix)
string(REGEX REPLACE "/$" "" STET_PC_PREFIX "${STET_PC_PREFIX}")
configure_file(cmake/stet.pc.in generated/stet.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/generated/stet.pc DESTINATION ${pkgconfig_folder})
