-- Every request another target: the URL's with a number behind it. Argument: where to begin, so that rounds do not meet.
local n = 0
init = function(args)
  n = tonumber(args[1]) or 0
end
request = function()
  n = n + 1
  return wrk.format(nil, wrk.path .. n)
end
