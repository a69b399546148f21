-- Plays a scene in a headless Neovim with editors/neovim/herdbook.lua, and writes down what it saw.
-- Everything comes by variables; test_neovim.py says what the facts must be.

local variables = vim.fn.environ()
local program = variables.HERDBOOK_PROGRAM
local herdbook = dofile(variables.HERDBOOK_RECIPE)

local function wait(what, holds)
  assert(vim.wait(60000, holds, 20), "waited in vain: " .. what)
end

local function shown()
  return vim.diagnostic.get(0)
end

local function at_line(number)
  wait("a comment at line " .. number, function()
    return #shown() == 1 and shown()[1].lnum == number
  end)
  return shown()[1].message
end

local function gone()
  wait("no comment", function()
    return #shown() == 0
  end)
end

--- What another process does.
local function elsewhere(...)
  local said = vim.fn.system({ program, ... })
  assert(vim.v.shell_error == 0, said)
end

--- Call something that answers later; its error and result.
local function answer(call)
  local error, result, over
  call(function(failure, found)
    error, result, over = failure, found, true
  end)
  wait("an answer", function()
    return over
  end)
  return { error = error, result = result }
end

--- Give an editor's menu and input box the answers of a person.
local function choosing(beginning, typed)
  local titles
  vim.ui.select = function(items, options, choose)
    titles = vim.tbl_map(options.format_item, items)
    for place, title in ipairs(titles) do
      if vim.startswith(title, beginning) then
        return choose(items[place], place)
      end
    end
  end
  vim.ui.input = function(_, done)
    done(table.remove(typed or {}, 1))
  end
  return function()
    wait("a menu", function()
      return titles
    end)
    return titles
  end
end

local SCENES = {}

function SCENES.attach()
  local client = herdbook.client()
  return {
    name = client.name,
    root = client.config.root_dir,
    message = at_line(2),
    column = shown()[1].col,
    severity = shown()[1].severity,
    source = shown()[1].source,
  }
end

function SCENES.edit()
  at_line(2)
  vim.api.nvim_buf_set_lines(0, 0, 0, false, { "import sys", "" })
  at_line(4)
  local cow = vim.api.nvim_buf_get_lines(0, 3, 4, false)[1]
  local behind = cow:find("🐄") - 1 + #"🐄"
  vim.api.nvim_buf_set_text(0, 3, behind, 3, behind, { "", "    and a second line" })
  at_line(5)
  local before = shown()[1].message
  vim.cmd("let &undolevels = &undolevels") -- what was done until here is not undone
  vim.cmd("6delete")
  wait("the comment to say that its line is gone", function()
    return shown()[1].message ~= before
  end)
  local removed = at_line(5)
  vim.cmd("undo")
  wait("the comment to be as it was", function()
    return shown()[1].message == before
  end)
  vim.cmd("write")
  return {
    removed = removed,
    back = at_line(5),
    lines = vim.api.nvim_buf_get_lines(0, 0, -1, false),
  }
end

function SCENES.resolve()
  at_line(2)
  vim.api.nvim_win_set_cursor(0, { 3, 0 })
  local menu = choosing("Resolve")
  vim.lsp.buf.code_action()
  local titles = menu()
  gone()
  return { titles = titles }
end

function SCENES.reply()
  at_line(2)
  vim.api.nvim_win_set_cursor(0, { 3, 0 })
  local menu = choosing("Reply", { "done, see below" })
  vim.lsp.buf.code_action()
  menu()
  wait("the reply", function()
    return #shown() == 1 and shown()[1].message:find("done, see below", 1, true)
  end)
  return { message = shown()[1].message }
end

function SCENES.commands()
  at_line(2)
  local claimed = answer(function(done)
    herdbook.execute("claim", { agent = "brisk-otter" }, done)
  end)
  local nothing = answer(function(done)
    herdbook.execute("claim", { agent = "nobody-knows" }, done)
  end)
  choosing("", { "brisk-otter", claimed.result.task.id, "sagde hej" })
  local completed = answer(function(done)
    herdbook.ask("complete", done)
  end)
  choosing("", { variables.HERDBOOK_PROPOSAL })
  local dismissed = answer(function(done)
    herdbook.ask("dismiss", done)
  end)
  choosing("", { "brisk-otter", "HEAD", "good" })
  local graded = answer(function(done)
    herdbook.ask("grade", done)
  end)
  return {
    claimed = claimed,
    nothing = nothing,
    completed = completed,
    dismissed = dismissed,
    graded = graded,
  }
end

function SCENES.request()
  at_line(2)
  return {
    tasks = answer(function(done)
      herdbook.request("task.list", { limit = 5 }, done)
    end),
    all = answer(function(done)
      herdbook.request("task.list", nil, done)
    end),
    missing = answer(function(done)
      herdbook.request("task.show", { id = "tsk_0000" }, done)
    end),
  }
end

function SCENES.live()
  local comment = variables.HERDBOOK_COMMENT
  at_line(2)
  elsewhere("review", "resolve", comment)
  gone()
  elsewhere("review", "unresolve", comment)
  at_line(2)
  elsewhere("review", "reply", comment, "from elsewhere", "--author", "brisk-otter")
  wait("the reply of another process", function()
    return shown()[1].message:find("brisk-otter: from elsewhere", 1, true)
  end)
  return { message = shown()[1].message }
end

function SCENES.lens()
  at_line(2)
  elsewhere("claim", "--agent", "brisk-otter")
  vim.api.nvim_buf_set_lines(0, -1, -1, false, { "# hej" })
  local document = vim.lsp.util.make_text_document_params(0)
  local before = answer(function(done) -- so that git's answer of before the save is known
    herdbook.request("textDocument/codeLens", { textDocument = document }, done)
  end)
  vim.cmd("write")
  local lens
  wait("a lens with the task", function()
    lens = vim.lsp.codelens.get(0)[1]
    return lens and lens.command.title:find("greet in Danish", 1, true)
  end)
  return { before = before.result, line = lens.range.start.line, title = lens.command.title }
end

local function main()
  herdbook.setup({ cmd = { program, "rpc" } })
  vim.cmd("edit " .. vim.fn.fnameescape(variables.HERDBOOK_FILE))
  wait("a client", function()
    return herdbook.client() and vim.lsp.buf_is_attached(0, herdbook.client().id)
  end)
  local id = herdbook.client().id
  local facts = SCENES[variables.HERDBOOK_SCENE]()
  vim.lsp.stop_client(id)
  wait("the server's end", function()
    return not herdbook.client()
  end)
  return { facts = facts }
end

local went, told = xpcall(main, debug.traceback)
local out = assert(io.open(variables.HERDBOOK_FACTS, "w"))
out:write(vim.json.encode(went and told or { error = told }))
out:close()
vim.cmd("qall!")
