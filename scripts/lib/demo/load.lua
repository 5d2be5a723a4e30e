-- The load of `make demo`, run by sysbench: small transactions, as an application with a shop's habits would send.
--
-- Every thread keeps a ledger: a file with the id of each row of demo.ledger whose commit succeeded, written when the
-- server has answered and not before. What stands in a ledger is what a client was promised.

sysbench.cmdline.options = {
    ledger_dir = { "Folder of the ledgers, one file a thread", "." },
    items = { "Rows of demo.item", 10000 },
}

-- Ids of one thread begin here, so that no two threads share one. A double holds them exactly.
local IDS_PER_THREAD = 1e9

local connection, ledger, next_id

function thread_init()
    connection = sysbench.sql.driver():connect()
    local path = string.format("%s/thread-%d", sysbench.opt.ledger_dir, sysbench.tid)
    ledger = assert(io.open(path, "a"))
    next_id = (sysbench.tid + 1) * IDS_PER_THREAD
end

function thread_done()
    connection:disconnect()
    ledger:close()
end

-- An id is used up by the attempt, not by its success: after an error nobody knows whether the row exists.
local function take_id()
    next_id = next_id + 1
    return next_id
end

local function insert(id)
    connection:query(string.format(
        "INSERT INTO demo.ledger (id, amount, note) VALUES (%.0f, %d, '%s')",
        id, sysbench.rand.uniform(1, 100000), sysbench.rand.string(string.rep("@", 60))))
end

-- Only reached when the commit raised no error. Flushed at once: the file must not know less than the client.
local function committed(id)
    ledger:write(string.format("%.0f\n", id))
    ledger:flush()
end

local function change_items()
    local items = sysbench.opt.items
    local first, second = sysbench.rand.default(1, items), sysbench.rand.default(1, items)
    connection:query(string.format("SELECT stock, label FROM demo.item WHERE id = %d", first))
    -- Always in the same order, so that two threads seldom wait for each other in a circle.
    connection:query(string.format("UPDATE demo.item SET stock = stock - 1 WHERE id = %d", math.min(first, second)))
    connection:query(string.format("UPDATE demo.item SET label = '%s' WHERE id = %d",
        sysbench.rand.string(string.rep("@", 100)), math.max(first, second)))
end

local function transaction(finish)
    local id = take_id()
    connection:query("BEGIN")
    change_items()
    insert(id)
    connection:query(finish)
    return id
end

local function single_statement()
    local id = take_id()
    insert(id)
    committed(id)
end

-- sysbench calls this again and again. An error of the server raises a Lua error and ends the call.
function event()
    local dice = sysbench.rand.uniform(1, 100)
    if dice <= 75 then
        committed(transaction("COMMIT"))
    elseif dice <= 95 then
        single_statement()
    else
        transaction("ROLLBACK")
    end
end
