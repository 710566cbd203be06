-- Nine in ten of a thousand hot targets, one in twenty a new one, one in twenty past the cache.
-- Arguments: where new targets begin, target past the cache.
local n, past = 0, ""
init = function(args)
  n = tonumber(args[1]) or 0
  past = args[2]
  math.randomseed(7)
end
request = function()
  local chance = math.random()
  if chance < 0.9 then return wrk.format(nil, wrk.path .. math.random(1, 1000)) end
  if chance < 0.95 then
    n = n + 1
    return wrk.format(nil, wrk.path .. (1000000 + n))
  end
  return wrk.format(nil, past)
end
