# Installs the build tree BUILD below SCRATCH, then builds and runs the project beside this file against that installation.
# It starts from nothing each time: what an earlier installation left behind must not help.
set(prefix "${SCRATCH}/prefix")
set(consumer "${SCRATCH}/consumer")
file(REMOVE_RECURSE "${prefix}" "${consumer}")

function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)
endfunction()

run("${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${prefix}")
run("${PYTHON}" "${CMAKE_CURRENT_LIST_DIR}/../library_paths_test.py" "${prefix}")
run("${CMAKE_COMMAND}" -S "${CMAKE_CURRENT_LIST_DIR}" -B "${consumer}" -G Ninja "-DCMAKE_PREFIX_PATH=${prefix}" "-DCMAKE_CXX_COMPILER=${COMPILER}"
    "-DCMAKE_BUILD_TYPE=${CONFIG}")
run("${CMAKE_COMMAND}" --build "${consumer}")
run("${consumer}/consumer")
run("${consumer}/custom_algorithm")

# Components need what they are linked with and nothing else: here as on a computer without the rest.
foreach(package IN ITEMS Eigen3 FFTW LAPACKE OpenBLAS Protobuf SimGrid simdjson ZLIB)
  list(APPEND absent "-DCMAKE_DISABLE_FIND_PACKAGE_${package}=ON")
endforeach()
run("${CMAKE_COMMAND}" -S "${CMAKE_CURRENT_LIST_DIR}/components" -B "${consumer}/components" -G Ninja "-DCMAKE_PREFIX_PATH=${prefix}"
    "-DCMAKE_CXX_COMPILER=${COMPILER}" "-DCMAKE_BUILD_TYPE=${CONFIG}" ${absent})
run("${CMAKE_COMMAND}" --build "${consumer}/components")
