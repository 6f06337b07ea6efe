# tpc on Debian: docker build -t tpc . ; docker run --rm -v $PWD:/data tpc mpirun -n 2 tpc-run model.tp2
FROM debian:bookworm-slim AS build
RUN apt-get update && apt-get install -y --no-install-recommends \
    gcc make autoconf automake pkg-config binutils libc6-dev protobuf-c-compiler libprotobuf-c-dev libjansson-dev libxxhash-dev \
    uthash-dev libdnnl-dev libpcre2-dev libutf8proc-dev libmicrohttpd-dev libopenmpi-dev
COPY . /src
WORKDIR /src/build
RUN autoreconf -i .. && ../configure --prefix=/usr --libdir=/usr/lib && make -j"$(nproc)" && make install DESTDIR=/out && \
    strip /out/usr/bin/tpc-* /out/usr/lib/libtpc.so.0

FROM debian:bookworm-slim
RUN apt-get update && apt-get install -y --no-install-recommends \
    libprotobuf-c1 libjansson4 libxxhash0 libdnnl2 libpcre2-8-0 libutf8proc2 libmicrohttpd12 libopenmpi3 libgomp1 openmpi-bin \
    openssh-client && rm -rf /var/lib/apt/lists/*
COPY --from=build /out /
ENV OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 \
    OMPI_MCA_btl_vader_single_copy_mechanism=none
WORKDIR /data
CMD ["tpc-run", "--doctor"]
