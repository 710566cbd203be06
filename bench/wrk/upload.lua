-- 64 kB of content that nobody reads on the way.
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/octet-stream"
wrk.body = string.rep("x", 65536)
