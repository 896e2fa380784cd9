-- Real Neovim against the real binary: `nvim --clean --headless -l nvim.lua`, started by `cargo xtask editors`.
-- The person is played by vim.ui.select and vim.ui.input; everything else is what a user has.

vim.cmd.runtime('plugin/pillion.lua')
local pillion = require('pillion')
local client = require('pillion.client')
pillion.setup({ cmd = { assert(vim.env.PILLION_BINARY), 'serve' } })

local passed, failed = 0, 0
local notices = {}
vim.notify = function(text)
  table.insert(notices, text)
end

local function wait(what, test)
  assert(vim.wait(20000, test, 10), 'waited in vain for ' .. what .. '; notices: ' .. vim.inspect(notices))
end

local function shows(name, text)
  wait(('`%s` in %s'):format(text, name), function()
    local buffer = vim.fn.bufnr(name)
    return buffer > 0
      and table.concat(vim.api.nvim_buf_get_lines(buffer, 0, -1, false), '\n'):find(text, 1, true)
  end)
end

--- Plays the person: prompts are answered in this order, each checked by a word that must be in it.
local function person(answers)
  local function reply(prompt, done, choose)
    local expected = table.remove(answers, 1)
    assert(expected and prompt:find(expected[1], 1, true), 'unexpected prompt: ' .. prompt)
    vim.defer_fn(function()
      done(choose(expected[2]))
    end, 20)
  end
  vim.ui.select = function(items, options, done)
    reply(options.prompt, done, function(wanted)
      for _, item in ipairs(items) do
        local label = options.format_item and options.format_item(item) or item
        if wanted and vim.startswith(label, wanted) then
          return item
        end
      end
      assert(not wanted, ('no `%s` to choose'):format(wanted))
    end)
  end
  vim.ui.input = function(options, done)
    reply(options.prompt, done, function(typed)
      return typed == 'DEFAULT' and options.default or typed
    end)
  end
  return answers
end

local function story(name, work)
  local fine, problem = xpcall(work, debug.traceback)
  passed, failed = passed + (fine and 1 or 0), failed + (fine and 0 or 1)
  print((fine and 'ok   ' or 'FAIL ') .. name .. (fine and '' or ': ' .. problem) .. '\n')
end

story('the list shows what is configured', function()
  vim.cmd.Pillion()
  shows('pillion://servers', 'scripted')
  shows('pillion://servers', 'stopped')
  assert(next(client.running().attached_buffers) == nil, 'no buffer is attached')
end)

story('start is shown in the list and in the statusline', function()
  vim.cmd('Pillion start scripted')
  shows('pillion://servers', 'ready')
  shows('pillion://servers', '4 tools')
  wait('the notice', function()
    return vim.tbl_contains(notices, 'pillion: scripted is ready')
  end)
  assert(pillion.status() == 'mcp 1/2', pillion.status())
end)

story('a server that cannot start says why', function()
  vim.cmd('Pillion start absent')
  wait('the reason', function()
    return vim.iter(notices):any(function(text)
      return text:find('absent is error: ', 1, true)
    end)
  end)
end)

story('a tool is called with typed arguments', function()
  vim.cmd([[Pillion call scripted greet {"name": "Ada ✓"}]])
  shows('pillion://result', 'Hello Ada ✓ ✓')
end)

story('a tool is picked and its arguments are asked for', function()
  local left = person({ { 'Tool of scripted', 'greet' }, { 'name (whom) *', 'Grace' } })
  vim.cmd('Pillion call scripted')
  shows('pillion://result', 'Hello Grace')
  assert(#left == 0, 'prompts left')
end)

story('a question is asked, a wrong value again, defaults taken', function()
  local left = person({
    { 'Who rides where?', 'Answer' },
    { 'Rider *', 'A' },
    { '. Rider *', 'Ada' }, -- the sidecar's complaint stands before the label
    { 'Seat *', 'pillion' },
    { 'Helmet', 'yes (default)' },
    { 'Speed', 'DEFAULT' },
  })
  vim.cmd('Pillion call scripted ride')
  shows('pillion://result', "accept: helmet=True, speed=50, where='pillion', who='Ada'")
  assert(#left == 0, 'prompts left')
  assert(#client.questions == 0, 'the question is still there')
end)

story('decline and a dismissed prompt are told apart', function()
  person({ { 'Who rides where?', 'Decline' } })
  vim.cmd('Pillion call scripted ride')
  shows('pillion://result', 'decline:')
  person({ { 'Who rides where?', nil } })
  vim.cmd('Pillion call scripted ride')
  shows('pillion://result', 'cancel:')
end)

story('two calls ask one after the other', function()
  local prompts = { { 'Who rides where?', 'Decline' }, { 'Who rides where?', 'Decline' } }
  local left, answers = person(prompts), {}
  for _ = 1, 2 do
    pillion.call('scripted', 'ride', nil, function(result, problem)
      table.insert(answers, problem or result.content[1].text)
    end)
  end
  wait('both answers', function()
    return #answers == 2
  end)
  assert(answers[1] == 'decline: ' and answers[2] == 'decline: ', vim.inspect(answers))
  assert(#left == 0, 'prompts left')
end)

story('progress reaches Neovim', function()
  local kinds = {}
  vim.api.nvim_create_autocmd('LspProgress', {
    callback = function(event)
      table.insert(kinds, event.data.params.value.kind)
    end,
  })
  vim.cmd([[Pillion call scripted count {"to": 3}]])
  shows('pillion://result', 'counted to 3')
  assert(kinds[1] == 'begin' and kinds[#kinds] == 'end' and #kinds > 2, vim.inspect(kinds))
end)

story('the log follows the server', function()
  vim.cmd('Pillion log scripted')
  shows('pillion://log/scripted', 'the scripted server is up')
  pillion.call('scripted', 'break', nil, function() end)
  shows('pillion://log/scripted', 'the chain came off')
end)

story('completion knows commands and servers', function()
  assert(vim.deep_equal(pillion.complete('st', 'Pillion st'), { 'start', 'stop' }))
  assert(vim.deep_equal(pillion.complete('', 'Pillion start '), { 'absent', 'scripted' }))
end)

story('health has no complaint about the plugin', function()
  vim.cmd('checkhealth pillion')
  local text = table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\n')
  assert(text:find('The sidecar runs, protocol ', 1, true), text)
  local _, errors = text:gsub('ERROR', '')
  assert(errors <= 1, text) -- the one server that cannot start
  assert(text:find('absent is error', 1, true), text)
end)

story('quit ends the sidecar', function()
  local running = client.running()
  vim.cmd('Pillion quit')
  wait('the end', function()
    return running:is_stopped() and not client.running()
  end)
end)

print(('\nneovim %s: %d passed, %d failed\n'):format(tostring(vim.version()), passed, failed))
os.exit(failed == 0 and 0 or 1)
