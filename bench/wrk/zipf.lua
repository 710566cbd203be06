-- Targets of a working set, the k-th as often as 1/k. Arguments: where distinct targets begin (unused), size of the set.
local sums = {}
init = function(args)
  local sum = 0
  for k = 1, tonumber(args[2]) do
    sum = sum + 1 / k
    sums[k] = sum
  end
  math.randomseed(7)
end
request = function()
  local wanted = math.random() * sums[#sums]
  local low, high = 1, #sums
  while low < high do
    local middle = math.floor((low + high) / 2)
    if sums[middle] < wanted then low = middle + 1 else high = middle end
  end
  return wrk.format(nil, wrk.path .. low)
end
