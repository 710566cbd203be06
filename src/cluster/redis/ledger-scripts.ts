/**
 * The ledger in Redis (docs/decisions/0007): four keys in one slot. Each script first checks that all of them exist, belong
 * together and were made by this server process since it became master. Otherwise it makes a new ledger, since the old data may
 * predate what members have seen. Times are the server's own and are compared only with each other.
 *
 * KEYS: ledger (epoch, run, term, seq, floor, born, heard, resumed, held), log (invalidation -> seq), members (name -> applied:beat:at), pending (write -> its longest quarantine, invalidations)
 * ARGV[1]: a fresh epoch; ARGV[2]: prefix of the channels; ARGV[3]: the member that calls; further ones by script
 */
const opening = `
local ledger, log, members, pending = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local clock = redis.call('TIME')
local now = tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000)
local run = string.match(redis.call('INFO', 'server'), 'run_id:(%w+)') or 'unknown'
-- Changes with each replica that becomes the master: a former master may have lost acknowledged data.
local term = string.match(redis.call('INFO', 'replication'), 'master_replid:(%w+)') or 'unknown'
local me = ARGV[3]
local epoch, seq, floor, born
-- No quarantine that was ever noted lasts longer.
local quarantinedUntil = 0

local function makeAnew()
  epoch, seq, floor, born = ARGV[1], 0, 0, now
  redis.call('DEL', ledger, log, members, pending)
  redis.call('HSET', ledger, 'epoch', epoch, 'run', run, 'term', term, 'seq', 0, 'floor', 0, 'born', now)
  redis.call('ZADD', log, 'inf', '@' .. epoch)
  redis.call('HSET', members, '@', epoch)
  redis.call('HSET', pending, '@', epoch)
end

local known = redis.call('HMGET', ledger, 'epoch', 'run', 'seq', 'floor', 'born', 'term', 'held')
if known[1] and known[2] == run and known[6] == term
  and redis.call('ZSCORE', log, '@' .. known[1])
  and redis.call('HGET', members, '@') == known[1]
  and redis.call('HGET', pending, '@') == known[1] then
  epoch, seq, floor, born = known[1], tonumber(known[3]), tonumber(known[4]), tonumber(known[5])
  quarantinedUntil = tonumber(known[7] or 0)
else makeAnew() end

local function standing(text)
  local applied, beat, at = string.match(text, '^(%d+):(%d+):(%d+)$')
  return tonumber(applied), tonumber(beat), tonumber(at)
end

local function number(value)
  return string.format('%.0f', value)
end

local function quarantine(ms)
  if now + ms <= quarantinedUntil or ms == 0 then return end
  quarantinedUntil = now + ms
  redis.call('HSET', ledger, 'held', number(quarantinedUntil))
end

local function note(notes, writer, remembered)
  if #notes == 0 then return end
  seq = seq + 1
  for _, text in ipairs(notes) do redis.call('ZADD', log, seq, text) end
  local excess = redis.call('ZCARD', log) - 1 - remembered
  if excess > 0 then
    local last = redis.call('ZRANGE', log, excess - 1, excess - 1, 'WITHSCORES')
    floor = tonumber(last[2])
    redis.call('ZREMRANGEBYRANK', log, 0, excess - 1)
  end
  redis.call('HSET', ledger, 'seq', number(seq), 'floor', number(floor))
  redis.call('PUBLISH', ARGV[2] .. 'noted', cjson.encode({ epoch, number(seq), writer, notes }))
end

local function others()
  local list = {}
  local all = redis.call('HGETALL', members)
  for i = 1, #all, 2 do
    if all[i] ~= '@' and all[i] ~= me then
      local applied, beat, at = standing(all[i + 1])
      list[#list + 1] = { all[i], applied, beat, at }
    end
  end
  return list
end

local function flat(list)
  local out = {}
  for _, one in ipairs(list) do
    out[#out + 1] = one[1]
    out[#out + 1] = number(one[2])
    out[#out + 1] = number(one[3])
  end
  return out
end

-- Notes a member's unsettled writes as of unknown outcome; notes everything when it may have sent unannounced writes.
local function forget(member, unheard, remembered)
  local notes, seen = {}, {}
  local all = redis.call('HGETALL', pending)
  local prefix = member .. '#'
  for i = 1, #all, 2 do
    if string.sub(all[i], 1, #prefix) == prefix then
      for _, text in ipairs(cjson.decode(all[i + 1])) do
        if tonumber(text) then quarantine(tonumber(text))
        elseif not seen[text] then
          seen[text] = true
          notes[#notes + 1] = text
        end
      end
      redis.call('HDEL', pending, all[i])
    end
  end
  if unheard then notes[#notes + 1] = 'a:' end
  redis.call('HDEL', members, member)
  note(notes, '', remembered)
end
`

/** ARGV: position's epoch, its number, time of the last reply or 0, lease, forgetAfter, invalidations remembered, epoch of the last reply. */
const sync = `${opening}
-- The ledger has gone back: a repeated number would be taken for an earlier note.
if ARGV[4] == epoch and tonumber(ARGV[5]) > seq then makeAnew() end
local applied = ARGV[4] == epoch and tonumber(ARGV[5]) or 0
local proof, lease, forgetAfter, remembered = tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[9])
-- No member reached the ledger: it was unreachable itself, so a late member was not silent alone.
local heard = redis.call('HMGET', ledger, 'heard', 'resumed')
local last, resumed = tonumber(heard[1] or now), tonumber(heard[2] or born)
if now - last > lease then
  resumed = now
  -- Members that have not found a new ledger yet get the full time again.
  if last - born < forgetAfter then born = now end
  redis.call('HSET', ledger, 'resumed', number(now), 'born', number(born))
end
redis.call('HSET', ledger, 'heard', number(now))
local silent = false
for _, one in ipairs(others()) do
  if now - math.max(one[4], resumed) > forgetAfter then forget(one[1], true, remembered)
  elseif now - one[4] > lease then silent = true end
end
-- The time of another server does not compare: with a clock that is ahead, a long delayed message would renew a beat.
local proven = ARGV[10] == epoch and proof > 0 and now - proof <= lease
local said = 'granted'
if now - born < forgetAfter then said = 'young-ledger'
elseif not proven then said = 'unproven'
elseif silent then said = 'member-silent' end
if proven then
  local mine = redis.call('HGET', members, me)
  local was, beat = 0, 0
  if mine then was, beat = standing(mine) end
  -- Beats follow the clock: a member that returns after it was forgotten must not repeat a beat that others have seen.
  if said == 'granted' then beat = math.max(beat + 1, now) end
  redis.call('HSET', members, me, number(math.max(was, applied)) .. ':' .. number(beat) .. ':' .. number(now))
end
local notes = redis.call('ZRANGEBYSCORE', log, '(' .. number(ARGV[4] == epoch and applied or -1), '9007199254740991', 'WITHSCORES')
local quarantineMs = applied < floor and math.max(0, quarantinedUntil - now) or 0
return { epoch, number(seq), number(floor), notes, flat(others()), said, number(now), number(quarantineMs) }
`

/** ARGV: write, its longest quarantine in ms and its invalidations as JSON. */
const begin = `${opening}
-- Unsettled writes are noted only for members, when they fall silent.
redis.call('HSETNX', members, me, '0:0:' .. number(now))
redis.call('HSET', pending, ARGV[4], ARGV[5])
return 1
`

/** ARGV: invalidations as JSON, settled writes as JSON, invalidations remembered, the longest quarantine among the invalidations in ms. */
const append = `${opening}
for _, write in ipairs(cjson.decode(ARGV[5])) do redis.call('HDEL', pending, write) end
quarantine(tonumber(ARGV[7]))
note(cjson.decode(ARGV[4]), me, tonumber(ARGV[6]))
return { epoch, number(seq), flat(others()) }
`

/** ARGV: member that has ended, invalidations remembered. While it could not reach the ledger it may have begun writes unannounced. */
const forget = `${opening}
forget(ARGV[4], true, tonumber(ARGV[5]))
return 1
`

/** ARGV: invalidations remembered. Removes a member that has delivered all invalidations; its unsettled writes are recorded. */
const leave = `${opening}
forget(me, false, tonumber(ARGV[4]))
return 1
`

export const ledgerScripts = { sync, begin, append, forget, leave }
