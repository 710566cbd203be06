-- 2 kB of JSON.
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
wrk.body = '{"text":"' .. string.rep("x", 2000) .. '"}'
